"""Questions that lead back to themselves."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from migrate.programs.processes.answers import Answers

GRAPHS = st.integers(1, 7).flatmap(
    lambda size: st.tuples(
        st.lists(st.lists(st.integers(0, size - 1), max_size=3), min_size=size, max_size=size),
        st.sets(st.integers(0, size - 1)),
        st.permutations(range(size)),
    )
)


def certain(rests_on, noes):
    """The largest set of questions that are yes: none of `noes`, and resting on nothing else than yes."""
    yes = set(range(len(rests_on))) - noes
    while wrong := {each for each in yes if not yes.issuperset(rests_on[each])}:
        yes -= wrong
    return yes


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no failure
@given(GRAPHS)
def test_an_answer_is_that_of_all_questions_together(graph):
    rests_on, noes, order = graph
    answers, asked = Answers(), []

    def find(question):
        asked.append(question)
        return question not in noes and all(
            answers.to(each, lambda each=each: find(each)) for each in rests_on[question]
        )

    for question in order:
        assert answers.to(question, lambda question=question: find(question)) == (question in certain(rests_on, noes))
    before = len(asked)
    assert all(answers.to(each, lambda each=each: find(each)) == (each in certain(rests_on, noes)) for each in order)
    assert len(asked) == before  # all are known by now


def test_what_does_not_rest_on_a_no_is_not_asked_again():
    answers, asked = Answers(), []

    def outer():
        return answers.to("sure", lambda: asked.append("sure") or True) and False

    assert not answers.to("outer", outer)
    assert answers.to("sure", lambda: asked.append("sure") or True)
    assert asked == ["sure"]


def test_a_reason_is_met_again_where_the_answer_is_known():
    answers = Answers()

    def clock():
        answers.meet("clock")
        return False

    def outer():
        return answers.to("clock", clock) or answers.to("sure", lambda: True)

    assert answers.to("outer", outer)
    assert answers.take() == "clock"
    assert answers.take() is None
    assert answers.to("sure", lambda: False)
    assert answers.take() is None
    assert answers.to("outer", lambda: False)
    assert not answers.to("clock", lambda: True)
    assert answers.to("sure", lambda: False)
    assert answers.take() == "clock"


def test_a_reason_is_that_of_who_asked_last_and_of_all_around():
    answers = Answers()

    def draw():
        answers.meet("draw")
        return answers.to("outer", outer)

    def outer():
        answers.meet("clock")
        return answers.to("draw", draw)

    assert answers.to("outer", outer)
    assert answers.take() == "draw"
    assert answers.to("outer", lambda: False)
    assert answers.take() == "draw"
