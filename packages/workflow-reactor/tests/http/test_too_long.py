"""Refusals in the public words of servers: which of them say that the conversation is too long."""

# ruff: noqa: E501 - an entry is a line, however long

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_reactor.http._faults import fault_of_error, fault_of_status
from workflow_reactor.http._too_long import says_too_long

TOO_LONG = {
    "input-tokens-but-got": "maximum number of input tokens is 8192 but got 9000",
    "token-count": "token count 9000 exceeds 8192",
    "total-tokens": "total tokens 9000 > 8192",
    "content-length": "Request exceeds maximum allowed content length",
    "max-prompt-tokens": "max_prompt_tokens exceeded",
    "traditional-chinese": "請求內容過長",
    "openai": "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens. Please reduce the length of the messages.",
    "openai-legacy": "This model's maximum context length is 4097 tokens, however you requested 4162 tokens (1090 in your prompt; 3072 for the completion). Please reduce your prompt; or completion length.",
    "openai-responses": "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "openai-gpt5": "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 301234 tokens. Please reduce the length of the messages.",
    "openai-string": "Invalid 'messages[1].content': string too long. Expected a string with maximum length 1048576, but got a string with length 2097152 instead.",
    "openai-array": "Invalid 'messages': array too long. Expected an array with maximum length 2048, but got an array with length 2100 instead.",
    "azure": "This model's maximum context length is 16385 tokens. However, your messages resulted in 20000 tokens. Please reduce the length of the messages.",
    "anthropic": "prompt is too long: 208310 tokens > 200000 maximum",
    "anthropic-sum": "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again",
    "anthropic-bytes": "Request exceeds the maximum size",
    "anthropic-413": "request_too_large: Request exceeds the maximum allowed number of bytes.",
    "gemini": "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
    "gemini-plain": "The input token count exceeds the maximum number of tokens allowed 1048576.",
    "vertex": "Unable to submit request because the input token count is 40000 but model only supports up to 32768. Reduce the input token count and try again.",
    "gemini-bytes": "Request payload size exceeds the limit: 20971520 bytes.",
    "mistral": "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
    "mistral-old": "Prompt contains 131345 tokens, too large for model with 131072 maximum context length",
    "groq": "Please reduce the length of the messages or completion.",
    "together": "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
    "together-tgi": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000 `inputs` tokens and 512 `max_new_tokens`",
    "fireworks": "The prompt is too long: 150000, model maximum context length: 131071",
    "deepseek": "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens (62000 in the messages, 8000 in the completion). Please reduce the length of the messages or completion.",
    "openrouter": 'This endpoint\'s maximum context length is 131072 tokens. However, you requested about 140000 tokens (139000 of text input, 1000 in the output). Please reduce the length of either one, or use the "middle-out" transform to compress your prompt automatically.',
    "vllm": "This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens. Please reduce the length of the input messages.",
    "vllm-max-tokens": "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 8192 tokens and your request has 5000 input tokens (4096 > 8192 - 5000).",
    "vllm-decoder": "The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that `max_model_len` is no smaller than the number of text tokens.",
    "vllm-fit": "The prompt (total length 5000) is too long to fit into the model (context length 4096). Make sure that `max_model_len` is no smaller than the number of text tokens plus multimodal tokens.",
    "vllm-new": "You passed 5000 input tokens and requested 0 output tokens. However, the model's context length is only 4096 tokens, resulting in a maximum input length of 4096 tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=5000)",
    "vllm-plus": "Input token count (5000) plus requested output count (100) exceeds the maximum context length of 4096",
    "llamacpp": "the request exceeds the available context size. try increasing the context size or enable context shift",
    "llamacpp-new": "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
    "llamacpp-500": "Context size has been exceeded.",
    "llamacpp-batch": "input is too large to process. increase the physical batch size",
    "llamacpp-embd": "input (5000 tokens) is larger than the max context size (4096 tokens). skipping",
    "llama-cpp-python": "Requested tokens (5000) exceed context window of 4096",
    "ollama": "the input length exceeds the context length",
    "ollama-prompt": "prompt too long; exceeded max context length by 1234 tokens",
    "ollama-embed": "input exceeds maximum context length and cannot be truncated further",
    "lmstudio": "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input",
    "lmstudio-keep": "The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length, or provide a shorter input",
    "lmstudio-mid": "Reached context length of 4096 tokens with model (arch: llama) that does not currently support mid-generation context overflow. Try reloading with a larger context length or shortening the prompt/chat.",
    "tgi": "Input validation error: `inputs` must have less than 1024 tokens. Given: 1500",
    "sglang": "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 5000 tokens: 4000 tokens from the input messages and 1000 tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.",
    "sglang-input": "Input length (5000 tokens) exceeds the maximum allowed length (4090 tokens). Use a shorter input or enable --allow-auto-truncate.",
    "sglang-longer": "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
    "bedrock": "Input is too long for requested model.",
    "bedrock-nova": "Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again.",
    "bedrock-wrapped": "The model returned the following errors: prompt is too long: 208310 tokens > 200000 maximum",
    "bedrock-maxlength": "Malformed input request: expected maxLength: 50000, actual: 60000, please reformat your input and try again.",
    "cohere": "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000. Try using a shorter prompt, or enabling prompt truncating.",
    "cohere-size": "too many tokens: size limit exceeded by 1234 tokens. Try using shorter or fewer inputs, or setting prompt_truncation='AUTO'.",
    "xai": "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "cerebras": "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192",
    "copilot": "prompt token count of 130000 exceeds the limit of 128000",
    "github-models": "Request body too large for gpt-4o model. Max size: 8000 tokens.",
    "minimax": "invalid params, context window exceeds limit (2013)",
    "moonshot": "Invalid request: Your request exceeded model token limit: 8192 (requested: 9000)",
    "zhipu": "Prompt exceeds max length",
    "zhipu-cn": "Prompt 超长",
    "zhipu-more": "tokens in request more than max tokens allowed",
    "dashscope": "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]",
    "volcengine": "Total tokens of image and text exceed max message tokens.",
    "volcengine-input": "Input length 300000 exceeds the maximum length 229376.",
    "watsonx": "the number of input tokens 5000 cannot exceed the total tokens limit 4096 for this model",
    "exllama": "Prompt length 5000 is greater than max_seq_len 4096",
    "tensorrt": "The sum of prompt length (5000.0), query length (0) should not exceed max_num_tokens (4096)",
    "lmdeploy": "The input prompt's length exceeds session_len 4096",
    "databricks": "Request size cannot exceed 4194304 bytes, please shorten the request.",
    "snowflake": "max tokens of 16384 exceeded. The passed in prompt has 20000 input tokens",
    "ds4": "prompt has 5,000 tokens, but the configured context size is 4,096 tokens",
    "mb": "message size 5000000 bytes exceeds 4 MB limit",
    "openclaw": "Model context window is 128k tokens, you requested 256k tokens",
    "openclaw2": "Context window exceeded: requested 12000 tokens",
    "openclaw3": "Prompt too large for this model",
    "ai21": "Prompt has too many tokens: 9000 tokens, max 8191",
    "hf": "Input is too long: 5000 tokens, the maximum is 4096",
    "nginx": "413 Request Entity Too Large",
    "code": "context_length_exceeded",
    "code2": "model_max_prompt_tokens_exceeded",
    "code3": "tokens_limit_reached",
    "code4": "exceed_context_size_error",
    "code5": "model_context_window_exceeded",
    "code6": "prompt_too_long",
    "litellm": "litellm.ContextWindowExceededError: AnthropicException",
    "mlx": "Prompt of 9000 tokens exceeds the model's maximum sequence length of 8192",
    "siliconflow": "length of prompt_tokens (33000) must be less than max_seq_len (32768).",
    "nctx": "slot unavailable, n_ctx too small",
    "perplexity": "Input exceeds the maximum number of tokens for this model",
    "friendli": "The total number of tokens (prompt + max_tokens) 9000 exceeds the limit 8192",
    "aleph": "Prompt too long: the prompt has 3000 tokens but the model can only take 2048",
    "replicate": "E1002 PromptTooLong: Prompt length exceeds maximum input length",
    "deepinfra": "Requested input length 40000 exceeds maximum input length 32767",
    "hyperbolic": "Requested token count exceeds the model's maximum context length",
    "nvidia": "ValueError: The prompt length 5000 exceeds max_model_len 4096",
    "predibase": "Input validation error: `inputs` must have less than 4095 tokens. Given: 5001",
}

OTHER = [
    "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000.",
    "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens for claude-3-5-sonnet",
    "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
    "`max_completion_tokens` must be less than or equal to `8192`, the maximum value for `max_completion_tokens` is less than the `context_window` for this model",
    "The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is lower than 4096.",
    "thinking.budget_tokens: Input should be greater than or equal to 1024",
    "temperature: Input should be less than or equal to 1",
    "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64, but got a string with length 70 instead.",
    "Invalid 'messages[3].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 45 instead.",
    "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 200 instead.",
    "Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length 6 instead.",
    "Invalid 'messages[0].name': string too long. Expected a string with maximum length 64",
    "Unknown parameter: 'context_window'.",
    "Unknown parameter: 'timeout'.",
    "Remove s3Uri and try again",
    'messages: roles must alternate between "user" and "assistant"',
    "messages.1.content: text content blocks must be non-empty",
    "request exceeds rate limit",
    "This request would exceed your account's rate limit. Please try again later.",
    "Too many requests",
    "You exceeded your current quota, please check your plan and billing details.",
    "request reached organization TPD rate limit, current: 1506556, limit: 1500000",
    "Context window too small: minimum is 1000 tokens",
    "The model `gpt-9` does not exist or you do not have access to it.",
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
    "Invalid schema for response_format 'reply': schema exceeds maximum nesting depth of 5",
    "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported.",
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    "Model is temporarily unavailable for this request",
    "Function call is missing a thought_signature in functionCall parts.",
    "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry.",
    "Invalid value for 'content': expected a string, got null.",
    "max_tokens must be at least 1, got 0",
    "n must be 1",
    "top_k: Input should be greater than 0",
    "This model does not support image input",
    "invalid message content type",
    "Expecting value: line 1 column 1",
    "Failed to parse request body: unexpected end of input",
    "'messages' is a required property",
    "Input should be a valid string",
    "function name or parameters is empty",
    "tool call validation failed",
    "Too many tools: 200 given, the maximum is 128",
    "metadata: too many keys",
    "unsupported_file",
    "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.",
    "The reasoning_content in the thinking mode must be passed back to the API.",
    "Image size exceeds the maximum of 5 MB",
]


@pytest.mark.parametrize("status", [400, 413, 422, 500])
@pytest.mark.parametrize("server", TOO_LONG)
def test_a_conversation_that_is_too_long_is_told_in_each_servers_words(
    server: str, status: int
) -> None:
    words = TOO_LONG[server]
    for body in (
        {"error": {"message": words, "type": "invalid_request_error", "code": None}},
        {"error": words},
        {"object": "error", "message": words, "code": status},
        {"detail": words},
        {
            "error": {
                "message": "Provider returned error",
                "metadata": {"raw": json.dumps({"error": {"message": words}})},
            }
        },
    ):
        assert fault_of_status(status, {}, json.dumps(body).encode()).kind == "too_long", body
    assert fault_of_status(status, {}, words.encode()).kind == "too_long"
    assert fault_of_error({"message": words, "code": 400}, {}).kind == "too_long"


@pytest.mark.parametrize("words", OTHER)
def test_what_is_wrong_with_something_else_is_not_too_long_and_not_sent_again(words: str) -> None:
    assert not says_too_long(words.lower())
    body = json.dumps({"error": {"message": words, "type": "invalid_request_error"}}).encode()
    assert fault_of_status(400, {}, body).kind in {"permanent", "not_allowed"}


WHAT = [
    "prompt",
    "input",
    "the messages",
    "your request",
    "Your prompt",
    "the input prompt",
    "the conversation",
]
HOW = [
    "is too long",
    "is too large",
    "exceeds the context window",
    "exceeds the maximum length",
    "exceeds the model's token limit",
    "has too many tokens",
]
LIMIT = [
    "",
    ": {} > {}",
    " ({} tokens, the limit is {})",
    ". Got {} tokens, maximum {}.",
    " for this model",
]


@given(
    st.sampled_from(WHAT),
    st.sampled_from(HOW),
    st.sampled_from(LIMIT),
    st.integers(10, 10**7),
    st.integers(10, 10**7),
)
def test_the_forms_of_the_words_are_told_whatever_fills_them(
    what: str, how: str, limit: str, sent: int, most: int
) -> None:
    assert says_too_long(f"{what} {how}{limit.format(sent, most)}".lower())


@given(
    st.text(max_size=2_000) | st.lists(st.sampled_from([*TOO_LONG.values(), *OTHER])).map(" ".join)
)
def test_any_words_are_judged_quickly(words: str) -> None:
    assert says_too_long(words.lower()) in {True, False}
