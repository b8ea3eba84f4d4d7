"""Messages go to exactly one function, and what is not matched to the sideline."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from signalbook.errors import UsageError
from signalbook.messages.catalog import Catalog
from signalbook.messages.dispatch import Delivery, Dispatcher, Unhandled

GROUP = "/messagegroups/g/messages"


def event(kind: str, **more: Any) -> dict[str, Any]:
    """A CloudEvent of a type."""
    return {"specversion": "1.0", "id": "1", "source": "/s", "type": kind, **more}


@pytest.fixture
def catalog() -> Catalog:
    """Three definitions, one of which wants a subject."""
    messages = {
        name: {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": name}}} for name in ("a", "b", "c")
    }
    messages["c"]["envelopemetadata"]["subject"] = {"required": True}  # type: ignore[index]
    return Catalog.from_documents({"messagegroups": {"g": {"messages": messages}}})


def test_a_message_goes_to_its_handler(catalog: Catalog) -> None:
    """An xid comes before a pattern, whichever was registered first; the first pattern that fits is taken."""
    dispatcher = Dispatcher(catalog, sideline=lambda delivery: f"side {delivery.answer.outcome}")

    @dispatcher.on(f"{GROUP}/*")
    def others(delivery: Delivery) -> str:
        return f"other {delivery.message['type']}"

    @dispatcher.on("/messagegroups/**")
    def never(delivery: Delivery) -> str:
        return "never"

    @dispatcher.on(f"{GROUP}/a")
    def one(delivery: Delivery) -> str:
        return f"one {delivery.answer.definition}"

    assert f"one {GROUP}/a" == dispatcher.dispatch(event("a"))
    assert "other b" == dispatcher.dispatch(event("b"))
    assert "side nonconformant" == dispatcher.dispatch(event("c"))
    assert "side unexpected" == dispatcher.dispatch(event("z"))
    assert "side malformed" == dispatcher.dispatch(b"x")
    assert {"matched": 2, "nonconformant": 1, "unexpected": 1, "malformed": 1} == dict(dispatcher.counts)


def test_a_matched_message_without_a_handler_is_sidelined(catalog: Catalog) -> None:
    """Nothing is dropped: what nobody handles goes to the sideline too."""
    aside: list[Delivery] = []
    dispatcher = Dispatcher(catalog, sideline=aside.append)
    dispatcher.dispatch(event("a"))
    assert ["matched"] == [delivery.answer.outcome.value for delivery in aside]


def test_without_a_sideline_it_is_an_error(catalog: Catalog) -> None:
    """A dispatcher without a sideline raises, and says what the message was."""
    with pytest.raises(Unhandled, match="unexpected") as caught:
        Dispatcher(catalog).dispatch(event("z"))
    assert "z" == caught.value.delivery.message["type"]


def test_a_batch_is_handled_event_by_event(catalog: Catalog) -> None:
    """Each event of a batch goes to its own handler, in order."""
    dispatcher = Dispatcher(catalog, sideline=lambda delivery: delivery.answer.outcome.value)
    dispatcher.add(f"{GROUP}/a", lambda delivery: "a")
    batch = json.dumps([event("a"), event("z")])
    assert ["a", "unexpected"] == dispatcher.dispatch(batch)
    assert ["a"] == dispatcher.dispatch(json.dumps([event("a")]))
    assert "malformed" == dispatcher.dispatch("[")


def test_several_messages_at_once(catalog: Catalog) -> None:
    """Of a list or any iterable, each message goes to its own handler, which is given that message."""
    dispatcher = Dispatcher(catalog, sideline=lambda delivery: (delivery.answer.outcome.value, delivery.message))
    dispatcher.add(f"{GROUP}/a", lambda delivery: delivery.message["id"])
    given = [event("a"), event("a") | {"id": "2"}, b"x"]
    expected = ["1", "2", ("malformed", b"x")]
    assert expected == dispatcher.dispatch(given)
    assert expected == dispatcher.dispatch(one for one in given)
    assert expected == asyncio.run(dispatcher.dispatch_async(given))
    assert (["1"], []) == (dispatcher.dispatch([event("a")]), dispatcher.dispatch([]))
    assert {"matched": 7, "malformed": 3} == dict(dispatcher.counts)


def test_coroutine_functions(catalog: Catalog) -> None:
    """`dispatch_async` awaits handlers that are coroutine functions, and calls the others; `dispatch` refuses them."""
    dispatcher = Dispatcher(catalog, within=["/messagegroups/g"])

    @dispatcher.on(f"{GROUP}/a")
    async def later(delivery: Delivery) -> str:
        await asyncio.sleep(0)
        return "later"

    dispatcher.add(f"{GROUP}/b", lambda delivery: "now")

    async def both() -> list[str]:
        return [await dispatcher.dispatch_async(event("a")), await dispatcher.dispatch_async(event("b"))]

    assert ["later", "now"] == asyncio.run(both())
    with pytest.raises(UsageError, match="dispatch_async"):
        dispatcher.dispatch(event("a"))


def test_registrations_that_cannot_work(catalog: Catalog) -> None:
    """A second handler of one xid, what is not an xid or not in the catalog, and what is not a function are errors."""
    dispatcher = Dispatcher(catalog)
    dispatcher.add(f"{GROUP}/a", print)
    with pytest.raises(UsageError, match="already"):
        dispatcher.add(f"{GROUP}/a", print)
    with pytest.raises(UsageError, match="begin with /"):
        dispatcher.add("a", print)
    with pytest.raises(UsageError, match=f'not a message of the catalog; is "{GROUP}/[abc]" meant'):
        dispatcher.add(f"{GROUP}/bb", print)
    wrong: Any = 5
    for target in (f"{GROUP}/b", f"{GROUP}/*"):
        with pytest.raises(UsageError, match="a function, not int"):
            dispatcher.add(target, wrong)
    for targets in ((), (wrong,), ("b",), (f"{GROUP}/a",), (f"{GROUP}/none",)):
        with pytest.raises(UsageError):
            dispatcher.on(*targets)
    with pytest.raises(UsageError, match="the sideline"):
        Dispatcher(catalog, sideline=wrong)


def test_one_name_of_a_scope(catalog: Catalog) -> None:
    """A scope may be one name."""
    dispatcher = Dispatcher(catalog, within="/messagegroups/g", sideline=lambda delivery: delivery.answer.definition)
    assert f"{GROUP}/a" == dispatcher.dispatch(event("a"))


def test_another_catalog(catalog: Catalog) -> None:
    """A dispatcher goes on with a newer catalog."""
    dispatcher = Dispatcher(catalog, sideline=lambda delivery: "side")
    dispatcher.add(f"{GROUP}/*", lambda delivery: "handled")
    assert "handled" == dispatcher.dispatch(event("a"))
    dispatcher.catalog = Catalog.from_documents({})
    assert "side" == dispatcher.dispatch(event("a"))
