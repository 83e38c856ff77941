"""`uwf cas get` and `cas ls`."""

from workflow_cas import content, open_store
from workflow_register import store_path

from ..cli import Cli
from ..entries import ONE


async def test_refs_are_listed_and_lead_to_objects(uwf: Cli) -> None:
    uwf.write("one.py", ONE)
    assert (await uwf("add", "greeter", "one.py")).code == 0
    assert (await uwf("run", "one.py", "Do it.")).code == 0

    (row,) = (await uwf("cas", "ls", "workflow/", "--json")).lines
    assert row["ref"] == "workflow/greeter"
    assert (await uwf("cas", "ls", "workflow/")).out == f"workflow/greeter\t{row['hash'][:12]}\n"
    (by_ref,) = (await uwf("cas", "get", "workflow/greeter", "--json")).lines
    (by_prefix,) = (await uwf("cas", "get", row["hash"][:12].upper(), "--json")).lines
    assert by_ref == by_prefix
    assert (by_ref["hash"], by_ref["kind"]) == (row["hash"], "node")
    assert '"refs": [' in (await uwf("cas", "get", "workflow/greeter")).out


async def test_a_content_is_printed_as_its_bytes(uwf: Cli) -> None:
    data = b"\xff\x00\x1b[31m"
    uwf.home.mkdir()
    async with open_store(store_path(uwf.home)) as store:
        await store.commit([content(data), content("text")])
    done = await uwf.shell(f"$UWF cas get {content(data).hash} | od -An -tx1")
    assert done.out.split() == ["ff", "00", "1b", "5b", "33", "31", "6d"]
    (binary,) = (await uwf("cas", "get", content(data).hash, "--json")).lines
    assert binary["base64"] == "/wAbWzMxbQ=="
    (text,) = (await uwf("cas", "get", content("text").hash, "--json")).lines
    assert (text["kind"], text["text"]) == ("content", "text")


async def test_what_is_not_there_gets_the_nearest_ref(uwf: Cli) -> None:
    nothing = await uwf("cas", "get", "abcd")
    assert (nothing.code, uwf.home.exists()) == (1, False)
    uwf.write("one.py", ONE)
    assert (await uwf("add", "greeter", "one.py")).code == 0
    near = await uwf("cas", "get", "workflow/greter")
    assert (near.code, near.err) == (
        1,
        "uwf: there is no ref and no object 'workflow/greter'; did you mean 'workflow/greeter'?\n",
    )
