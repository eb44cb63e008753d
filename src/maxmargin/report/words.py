"""The findings as sentences; the page and the terminal say the same."""

from __future__ import annotations

from maxmargin.certificates import Outcome as Proof
from maxmargin.certificates import Verdict
from maxmargin.report.outcome import Outcome, TestPart
from maxmargin.solution import Status


def percent(share: float) -> str:
    """A share with as many digits as it deserves.

    Examples
    --------
    >>> percent(0.0351), percent(0.0), percent(0.12345)
    ('3.5 %', '0 %', '12.3 %')
    """
    return "0 %" if share == 0 else f"{100 * share:.1f} %"


def duration(seconds: float) -> str:
    """A time in the unit it deserves.

    Examples
    --------
    >>> duration(0.0042), duration(3.21), duration(600)
    ('4 ms', '3.2 s', '600 s')
    """
    if seconds < 1.0:
        return f"{1e3 * seconds:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 100.0 else f"{seconds:.0f} s"


def share_above_best(verdict: Verdict) -> float:
    """By what share of its objective a hyperplane can be above the best."""
    return (verdict.primal - verdict.dual) / max(abs(verdict.primal), 1e-300)


def certificate_in_words(outcome: Outcome) -> str:
    """What was proven, for somebody who has never heard of duality."""
    verdict, machine = outcome.verdict, outcome.model.machine
    if verdict.outcome is Proof.REJECTED:
        wrong = f"{verdict.worst}: {verdict.checks[verdict.worst]}"
        return f"The certificate was REJECTED: {wrong}. Do not trust this model."
    share = share_above_best(verdict)
    within = share * abs(verdict.primal)
    proven = (
        f"No hyperplane can have an objective below {verdict.dual:.10g}; this one has {verdict.primal:.10g}, so it is "
        f"within {within:.2g} ({share:.1e} of the objective) of the best there is"
    )
    if verdict.outcome is Proof.HONEST:
        return f"NOT PROVEN to be near-optimal: {proven}, where {verdict.max_gap:.0e} was asked for."
    return f"{proven}. Its weights are within {machine.certificate_.distance_bound:.1e} of the best weights."


def status_in_words(outcome: Outcome) -> str:
    solution = outcome.model.machine.solution_
    if solution.status is Status.CONVERGED:
        return f"converged: {solution.status.sentence}"
    if not solution.w.any():
        return f"stopped early: {solution.status.sentence}. All weights are zero: the model answers always the same"
    return (
        f"stopped early: {solution.status.sentence}. The relative gap is {solution.gap:.1e}, "
        f"which means that no hyperplane's objective is lower by more than that share"
    )


def answers_in_words(test: TestPart) -> str:
    """For rows that were held out; of others, an interval would promise too much."""
    low, high = test.interval
    return (
        f"{test.n_wrong} of {len(test.y)} unseen rows answered wrongly: error {percent(test.error)}, 95 % confidence "
        f"interval {percent(low)} to {percent(high)} (always answering “{test.majority}”: "
        f"{percent(test.majority_error)})"
    )
