import threading

import pytest

from signalbook import budget
from signalbook.budget import Budget, Cancelled, TooMuch, within


def test_a_spent_budget_stays_spent() -> None:
    """Whoever catches the end of a budget by mistake meets it again at the next step."""
    made = Budget(2, "This request")
    made.spend(2)
    for _ in range(2):
        with pytest.raises(TooMuch, match=r"^This request takes more than 2 steps of work$") as caught:
            made.spend()
        assert made is caught.value.budget
    assert made.left < 0


def test_a_part_takes_from_the_whole() -> None:
    """A part ends at its own limit or at that of the whole, and the error tells whose it was."""
    whole = Budget(10, "This request")
    part = whole.part(6, "This message")
    with pytest.raises(TooMuch, match="This message") as caught:
        part.spend(7)
    assert (part, 0) == (caught.value.budget, whole.spent)
    part = whole.part(100, "This message")
    part.spend(10)
    with pytest.raises(TooMuch, match="This request") as caught:
        part.spend()
    assert whole is caught.value.budget


def test_more_may_be_allowed() -> None:
    """What is added may be spent, but not after the work was cancelled."""
    made = Budget(1)
    made.add(1)
    made.spend(2)
    made.cancel()
    made.add(100)
    assert made.is_cancelled
    with pytest.raises(Cancelled):
        made.spend()


def test_another_thread_cancels() -> None:
    """Work that nobody waits for ends at its next step, whatever was spent meanwhile."""
    made = Budget(10**12, "This request")
    begun, ended = threading.Event(), []

    def work() -> None:
        part = made.part(10**12)
        try:
            while True:
                part.spend()
                begun.set()
        except Cancelled as error:
            ended.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    assert begun.wait(60)
    made.cancel()
    thread.join(60)
    assert ["This request was cancelled"] == ended


def test_work_takes_from_the_budget_that_it_is_within() -> None:
    """Each thread has its own, and outside of any there is no limit."""
    budget.spend(10**9)
    made = Budget(5)
    with within(made), within(budget.current().part(3)):
        budget.spend(3)
        other = threading.Thread(target=budget.spend, args=(100,))
        other.start()
        other.join()
        with pytest.raises(TooMuch):
            budget.spend()
    assert 3 == made.spent
    budget.spend(10**9)
    assert 7 == budget.current().part(7).left
