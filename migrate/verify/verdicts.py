"""From runs to verdicts. Where a verdict needs one more run to be sure, that is made here."""

from __future__ import annotations

from dataclasses import dataclass, replace

from migrate.options import Target
from migrate.verify.compare.batches import STEPS, same_batches, same_ranks
from migrate.verify.compare.checkpoints import loadable
from migrate.verify.compare.evaluation import exact_evaluation, joined_too_often
from migrate.verify.compare.lines import Volatile
from migrate.verify.compare.one import same_on_one
from migrate.verify.compare.schedule import as_on_several, same_schedule
from migrate.verify.compare.voice import one_voice
from migrate.verify.model import Contract, Outcome, Verdict
from migrate.verify.run import Run
from migrate.verify.runs import Runs, Several
from migrate.verify.trials import Kind, Trials

OF_ONE = (Contract.E1, Contract.E6)
OF_SEVERAL = (Contract.RANKS, Contract.E2, Contract.E3, Contract.E4, Contract.E5, Contract.E6)
SLOWER = 10  # a run that takes so many times as long as another hangs
STILL = 0.4  # and so does one in which nothing happens for this part of the time that it has
DISTRIBUTED = (b"init_process_group", b"torch.distributed", b"apex.parallel", b"deepspeed")


@dataclass(frozen=True, slots=True)
class Judge:
    """Gives the verdicts about one set of runs."""

    trials: Trials
    runs: Runs
    again: Run  # of the original; it also loads what the others have saved

    def verdicts(self) -> list[Verdict]:
        """For each number of processes, in the order of the contracts."""
        found: list[Verdict] = []
        if (one := self.runs.one) is not None:
            found.append(ran := self._runs(one, 1))
            if ran.outcome is Outcome.FAIL:
                found += [unchecked(contract, 1) for contract in OF_ONE]
            else:
                found.append(same_on_one(self.runs.original, self.again, one))
                found.append(loadable(self.runs.original, one, self.again, self._place(one)))
        for count, several in self.runs.several.items():
            found.append(ran := self._runs_on_several(several, count))
            if ran.outcome is Outcome.FAIL:
                found += [unchecked(contract, count) for contract in OF_SEVERAL]
            else:
                found += self._of_several(several, count)
        return found

    def _place(self, run: Run) -> int:
        return list(self.trials.kept).index(run.name)

    def _runs(self, converted: Run, count: int) -> Verdict:
        """Whether the converted program ends as the original does."""
        original = self.runs.original
        if converted.has_failed and not (original.has_failed and converted.fails_as(original)):
            return Verdict(Contract.RUNS, count, Outcome.FAIL, f"it {converted.why}")
        if original.has_failed and not converted.has_failed and not converted.end.is_cut:
            message = f"the original {original.why}, the converted program {converted.why}"
            return Verdict(Contract.RUNS, count, Outcome.FAIL, message)
        if converted.end.is_cut and not original.end.is_cut:
            limit_s = self.trials.wish.limit_s
            message = f"it did not come to its end within {limit_s:g} s{_standing(converted)}"
            hangs = original.seconds * SLOWER < converted.seconds or _still_s(converted) > limit_s * STILL
            return Verdict(Contract.RUNS, count, Outcome.FAIL if hangs else Outcome.NOT_CHECKED, message)
        return Verdict(Contract.RUNS, count, Outcome.PASS, f"it {converted.why}")

    def _runs_on_several(self, several: Several, count: int) -> Verdict:
        """A program that parts its processes may come to the steps asked for before it fails: frozen, it goes on."""
        ran = self._runs(several.launched, count)
        if ran.outcome is Outcome.FAIL or several.frozen is not None:
            return ran
        message = f"with every step undone it {several.reason}, which the original does not"
        return Verdict(Contract.RUNS, count, Outcome.FAIL, message)

    def _of_several(self, several: Several, count: int) -> list[Verdict]:
        launched, frozen, alone = several.launched, several.frozen, self.runs.frozen
        assert alone is not None
        assert frozen is not None
        found = [same_ranks(launched)]
        if several.reason:
            found.append(unchecked(Contract.E2, count, f"the global batch cannot be kept: {several.reason}"))
        else:
            keeps_order = self.trials.wish.target is Target.RUNTIME  # Accelerate does not
            found.append(same_batches(alone, frozen, self.runs.original, launched, keeps_order=keeps_order))
        volatile = Volatile.between(self.runs.original.main, self.again.main)
        found.append(self._evaluation(alone, frozen, several, volatile))
        repeated = self.runs.original.files.keys() & self.again.files.keys()
        found.append(one_voice(alone, frozen, launched, repeated))
        found.append(same_schedule(alone, frozen, self.runs.original, launched))
        found.append(loadable(alone, frozen, self.again, self._place(frozen)))
        return self._by_processes(found, several, count)

    def _evaluation(self, alone: Run, frozen: Run, several: Several, volatile: Volatile) -> Verdict:
        """E3. What a program counts by processes is right only as it is launched, not where batches are cut."""
        verdict, run = exact_evaluation(alone, frozen, volatile, self._on_other_data), frozen
        if frozen.splits and verdict.outcome is Outcome.FAIL:
            again = self._frozen_as_launched(several)
            if not again.has_failed:
                verdict, run = exact_evaluation(alone, again, volatile, self._on_other_data), again
        if verdict.outcome is Outcome.FAIL or self._is_distributed():
            return verdict
        return joined_too_often(alone, run, volatile, lambda: self._frozen_as_launched(several)) or verdict

    def _frozen_as_launched(self, several: Several) -> Run:
        count, times = several.launched.processes, self._times(several)
        name = f"converted on {count}, frozen as launched"
        return self.trials.further(
            Kind(name=name, converted=True, processes=count, cpu=True, is_frozen=True, times=times)
        )

    def _times(self, several: Several) -> int:
        """How many steps of the original one of several processes takes."""
        original, launched = self.runs.original, several.launched
        if original.cut or launched.cut:
            return several.times
        return max(1, len(original.main.steps) // max(1, len(launched.main.steps)))

    def _on_other_data(self) -> Run | None:
        """The original frozen, on other training batches; None if it fails then."""
        assert self.runs.frozen is not None
        record = self.runs.frozen.main
        shuffled = tuple((number, sum(b.passes == number for b in record.batches)) for number in record.trained)
        run = self.trials.further(Kind(name="original, frozen, on other batches", is_frozen=True, shuffled=shuffled))
        return None if run.has_failed else run

    def _by_processes(self, found: list[Verdict], several: Several, count: int) -> list[Verdict]:
        """A program that goes by the number of processes itself is compared with its original on as many."""
        wrong = [each for each in found if each.outcome is Outcome.FAIL and _goes_by_processes(each)]
        if not wrong or not self._is_distributed():
            return found
        kind = Kind(name=f"original on {count}", processes=count, cpu=True, times=self._times(several))
        run = self.trials.further(kind)
        if run.has_failed or run.main.group == 1:  # on a machine without as many GPUs, say, or without an argument
            why = run.why if run.has_failed or run.cut else "does not join others with these arguments"
            reason = f"it goes by the number of processes, and its original {why}, started {count} times"
            return [
                replace(each, outcome=Outcome.NOT_CHECKED, message=reason) if each in wrong else each for each in found
            ]
        if not as_on_several(run, several.launched):
            return found
        message = f"steps and learning rates go by the number of processes, as those of the original do on {count}"
        as_before = {Contract.E2: Outcome.NOT_CHECKED, Contract.E5: Outcome.PASS}
        return [
            Verdict(each.contract, count, as_before[each.contract], message) if each in wrong else each
            for each in found
        ]

    def _is_distributed(self) -> bool:
        wish = self.trials.wish
        sources = ((wish.folder / path).read_bytes() for path in wish.changed)
        return any(word in source for source in sources for word in DISTRIBUTED)


def _still_s(run: Run) -> float:
    """For how long nothing has happened in any process whose time was over."""
    return min(record.end.still_s for record in run.records if record.end.is_cut)


def _standing(run: Run) -> str:
    """Where the processes stood."""
    places = {
        rank: record.end.place for rank, record in enumerate(run.records) if record.end.is_cut and record.end.place
    }
    if len(set(places.values())) < 2:
        return f"; it stood at {run.end.place}" if run.end.place else ""
    return "; it stood at " + ", ".join(f"{place} (process {rank})" for rank, place in places.items())


def _goes_by_processes(verdict: Verdict) -> bool:
    """Whether what is wrong may be meant so: another rate, or another number of steps."""
    is_length = verdict.difference is not None and verdict.difference.what == STEPS
    return verdict.contract is Contract.E5 or (verdict.contract is Contract.E2 and is_length)


def unchecked(contract: Contract, count: int, reason: str = "it does not run") -> Verdict:
    """A verdict that nothing is said in."""
    return Verdict(contract, count, Outcome.NOT_CHECKED, reason)
