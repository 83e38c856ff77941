"""`uwf setup`: what it writes, and what it never writes."""

from ..cli import Cli


async def test_setup_from_the_environment_writes_a_reference_and_never_the_key(uwf: Cli) -> None:
    done = await uwf("setup", OPENAI_API_KEY="sk-environment")
    text = (uwf.home / "workflow.yaml").read_text(encoding="utf-8")

    assert done.code == 0
    assert "${OPENAI_API_KEY}" in text
    assert "sk-environment" not in text + done.out + done.err


async def test_setup_local_names_a_model_of_the_catalogue(uwf: Cli) -> None:
    assert (
        "models.default = local/smollm2-135m" in (await uwf("setup", "--local", "smollm2-135m")).out
    )
    assert "local/" in (await uwf("setup")).out


async def test_a_key_does_not_follow_a_provider_to_another_url(uwf: Cli) -> None:
    first = ["--base-url", "http://one.test/v1", "--model", "m", "--api-key-env", "MY_KEY"]
    assert (await uwf("setup", "--provider", "p", *first)).code == 0
    second = ["--base-url", "http://two.test/v1", "--model", "m"]
    assert (await uwf("setup", "--provider", "p", *second)).code == 0
    assert (await uwf("setup", "--base-url", "http://[::1]:8000/v1", "--model", "m")).code == 0

    text = (uwf.home / "workflow.yaml").read_text(encoding="utf-8")
    assert "MY_KEY" not in text
    assert "1-8000/m" in text
