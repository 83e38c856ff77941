"""Whether a refusal says that the conversation is too long for the model.

No two servers use the same words, and few give a code. What they say has one of a few forms: the
context and that it is exceeded, the input and that it is too long, how many tokens were sent, or
the advice to send less. What is refused for its rate, or for one field, is told apart.
"""

from __future__ import annotations

import re

_INPUT = r"\b(?:prompts?|inputs?|messages?|conversation|history|requests?|payload|body|contents?)\b"
_SIZE = r"\b(?:tokens?|lengths?|sizes?|characters?|chars|bytes|len)\b"
_CONTEXT = (
    r"context[\s_-]*(?:length|window|size|limit|len|overflow)|model[\s_-]*len(?:gth)?\b|\bn_ctx\b"
    r"|max[\s_]*(?:model|seq|sequence|context)[\s_]*len(?:gth)?|session_len|sequence length"
)
_EXCESS = (
    r"exceed|too (?:long|large|big|many)|(?:long|larg|great|bigg|high)er than|more than"
    r"|beyond|overflow|surpass|over the"
)
_FORMS = re.compile(
    "|".join(
        [
            # the context and that it is too small, or how large it is
            rf"(?:{_CONTEXT}).{{0,200}}?(?:{_EXCESS}|only|reduce|shorte[rn]|resulted|requested"
            r"|your request|but)",
            rf"(?:{_EXCESS}|maximum|reached|less than).{{0,80}}?(?:{_CONTEXT})",
            r"(?:n_ctx|context (?:size|length)) (?:is )?too small|expected maxlength: \d+, actual",
            # the input, measured or not, and that it is too long
            rf"{_INPUT}.{{0,60}}?\btoo (?:long|large|big|many tokens)",
            rf"{_INPUT}.{{0,60}}?exceed\w*.{{0,60}}?(?:{_SIZE}|limit|maximum|model)",
            rf"{_INPUT}.{{0,40}}?{_SIZE}.{{0,60}}?(?:{_EXCESS}|must (?:be|have)|should be \[)",
            rf"{_SIZE}.{{0,30}}?{_INPUT}.{{0,60}}?(?:{_EXCESS}|cannot be|should be \[)",
            rf"{_INPUT}.{{0,30}}?(?:must|should|can) (?:have|contain|be).{{0,30}}?"
            rf"(?:less|fewer|at most|no more|<).{{0,20}}?{_SIZE}",
            r"(?:string|array)_above_max_length|(?:request|prompt|input|context)_too_l(?:arge|ong)",
            r"too many (?:input |prompt |context )?tokens",
            r"tokens?[\s_]*(?:limit|count)[\s_]*(?:is |has been |was )?(?:exceeded|reached)",
            r"tokens[\s_]limit[\s_](?:exceeded|reached)|exceed\w* (?:\w+ ){0,3}token limit",
            r"max\w* (?:allowed )?(?:prompt|input|request)[\s_](?:length|size|tokens)",
            r"max_(?:prompt|input)_tokens exceeded|max\w* (?:allowed )?content length",
            r"(?:token count|(?:total|input|prompt) tokens)[^.]{0,30}?(?:exceed|>|but got)",
            r"(?:prompt|input)_tokens_exceeded|max tokens of \d+ exceeded",
            r"(?:tokens).{0,40}?exceed\w* (?:the )?max\w* (?:message|input|prompt)",
            # how many tokens there were
            r"(?:prompt|request|messages?|input)s? (?:contains?|has|have|of|with|used)"
            r" (?:about )?[\d,]+ (?:\w+ )?tokens",
            r"requested tokens \(\d+\)|(?:passed|resulted in) [\d,]+ (?:\w+ )?tokens",
            # the advice to send less
            r"(?:reduce|shorten|decrease|trim|truncate) (?:the |your )?(?:\w+ of )?(?:the |your )?"
            r"(?:\w+ )?(?:length|size|tokens|messages?|prompts?|inputs?|request|conversation)",
            r"(?:shorter|smaller) (?:prompt|input|message|request|context|conversation)",
            "超长|过长|超長|過長|超出.{0,12}(?:长度|上下文|限制)|超过.{0,12}(?:长度|上下文|最大)",
        ]
    ),
    re.DOTALL,
)
_RATE = re.compile(
    r"rate.?limit|too many requests|per[ _](?:second|minute|min|hour|day)|\b[tr]p[md]\b"
    r"|concurren|throttl|\bquota"
)
_FIELD = re.compile(r"(?:invalid|parameter|field|value for)[^'\"`]{0,20}['\"`]([\w.\[\]]+)['\"`]")
_OF_THE_CONVERSATION = re.compile(
    r"(?:messages|input|prompt)(?:[.\[]\d+\]?(?:\.content(?:[.\[]\d+\]?(?:\.text)?)?)?)?"
)
_NEVER_FITS = re.compile(
    r"request (?:is )?too large|tokens must be reduced|reduce your message size"
)


def says_too_long(words: str) -> bool:
    """Whether an error's words, in lower case, mean that the conversation doesn't fit."""
    if _RATE.search(words):
        return False
    field = _FIELD.search(words)
    if field is not None and not _OF_THE_CONVERSATION.fullmatch(field[1]):
        return _mentions_context(words)
    return _FORMS.search(words) is not None


def says_never_fits(words: str) -> bool:
    """Whether a rate limit says that this one request is larger than all of it."""
    return _NEVER_FITS.search(words) is not None


def _mentions_context(words: str) -> bool:
    """`'max_tokens' is too large … maximum context length …`: the field is one part of the sum."""
    return re.search(rf"maximum (?:{_CONTEXT})", words) is not None
