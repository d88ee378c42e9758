"""What functions come to by their calls."""

from migrate.programs.reach.callees import Reaching

CALLS = {"a": "bc", "b": "d", "c": "a", "d": "", "e": "ed", "f": "cg", "g": "s", "s": "", "h": "f"}


def reaching(asked, speaking="s"):
    """A question about units that are letters."""

    def has(unit):
        asked.append(unit)
        return unit in speaking

    return Reaching(has, lambda unit: CALLS[unit])


def test_what_is_called_counts_in_rings_too():
    comes = reaching([])
    assert {unit for unit in CALLS if comes(unit)} == set("fghs")
    assert not any(reaching([], "")(unit) for unit in CALLS)
    assert all(reaching([], "d")(unit) for unit in "abcdefh")


def test_each_is_looked_into_once():
    asked = []
    comes = reaching(asked)
    for unit in (*CALLS, *CALLS):
        comes(unit)
    assert sorted(asked) == sorted(set(asked)) == sorted(CALLS)


def test_nothing_is_looked_into_before_it_is_asked():
    asked = []
    assert reaching(asked)("g")
    assert "a" not in asked
