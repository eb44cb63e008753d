"""scikit-learn's own tests of its support vector machines, with the classes here in the place of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from typing import Any

import pytest

THEIRS = "sklearn.svm.tests.test_svm"
MACHINES = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")

LINEAR = "LinearSVC and LinearSVR alone, which have tests of their own here."
PRIVATE = "A private function of scikit-learn."

# Tests in which no machine with a kernel takes part, and what they are about.
LEFT_OUT = {
    "test_linearsvr_fit_sampleweight": LINEAR,
    "test_linearsvc_parameters": LINEAR,
    "test_linearsvc": LINEAR,
    "test_linearsvc_crammer_singer": LINEAR,
    "test_linearsvc_fit_sampleweight": LINEAR,
    "test_crammer_singer_binary": LINEAR,
    "test_linearsvc_iris": LINEAR,
    "test_dense_liblinear_intercept_handling": LINEAR,
    "test_liblinear_set_coef": LINEAR,
    "test_linearsvc_verbose": LINEAR,
    "test_linear_svm_convergence_warnings": LINEAR,
    "test_lsvc_intercept_scaling_zero": LINEAR,
    "test_linearsvm_liblinear_sample_weight": LINEAR,
    "test_dual_auto": PRIVATE,
    "test_dual_auto_edge_cases": PRIVATE,
}

BITS = "Asks for 0.25 to the last bit; a fit ends at a gap of 1e-6 at most, not at the same bits."
NEGATIVE = "A weight below zero is refused, since no optimum exists with it; a weight of 0 leaves a row out."
TUBE = "C must be finite: where rounding alone costs infinitely much, no function could be certified."

# What fails on purpose: a test with all its cases, or one case of it, and why.
DELIBERATE = {
    "test_libsvm_parameters": BITS,
    "test_tweak_params": BITS,
    "test_svr_errors": "A kernel that returns a matrix of a wrong shape is refused by fit already, not by predict.",
    "test_negative_sample_weights_mask_all_samples": "The message says which weights are zero or negative.",
    "test_negative_weights_svc_leave_just_one_label": NEGATIVE,
    "test_negative_weights_svc_leave_two_labels[partial-mask-label-1-SVC]": NEGATIVE,
    "test_negative_weights_svc_leave_two_labels[partial-mask-label-1-NuSVC]": NEGATIVE,
    "test_negative_weight_equal_coeffs[partial-mask-label-1-SVC]": NEGATIVE,
    "test_negative_weight_equal_coeffs[partial-mask-label-1-NuSVC]": NEGATIVE,
    "test_negative_weight_equal_coeffs[partial-mask-label-1-NuSVR]": NEGATIVE,
    "test_bad_input": "Sparse rows are accepted by a machine that was fitted to dense ones.",
    "test_sparse_precomputed": "A sparse matrix of the kernel's values is accepted.",
    "test_svc_nonfinite_params": "The message says what overflows, before anything is learned.",
    "test_libsvm_convergence_warnings": "Two iterations are enough, so there is nothing to warn of.",
    "test_svc_ovr_tie_breaking": "A score of exactly 0 is the first class's in votes, as in the decision function; "
    "LIBSVM votes for the second.",
    "test_custom_kernel_not_array_input": "Rows are numbers: of a kernel of texts, pass the values.",
    "test_svc_raises_error_internal_representation": "Changes a private attribute that does not exist here.",
    "test_svm_with_infinite_C[42-inf0-SVR-make_regression]": TUBE,
    "test_svm_with_infinite_C[42-inf1-SVR-make_regression]": TUBE,
    "test_svc_nusvc_probA_probB_deprecated": "probA_ and probB_ are deprecated; one steepness for all classes is in "
    "their place.",
}


class Recorder:
    """Leaves tests out, and writes down which machines each one names and how the others end."""

    def __init__(self) -> None:
        self.names: dict[str, list[str]] = {}
        self.failures: dict[str, str] = {}  # of every case: "" if it passed

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        self.names = {item.originalname: sorted({*item.function.__code__.co_names} & {*MACHINES}) for item in items}
        items[:] = [item for item in items if item.originalname not in LEFT_OUT]

    def pytest_runtest_logreport(self, report: Any) -> None:
        case = report.nodeid.split("::")[-1]
        if report.failed:
            self.failures[case] = report.longreprtext
        elif report.when == "call" and report.passed:
            self.failures.setdefault(case, "")


def run_theirs(folder: str) -> None:
    """In a process of its own: what is replaced is never put back."""
    import sklearn.svm

    import maxmargin

    for name in MACHINES:
        setattr(sklearn.svm, name, getattr(maxmargin, name))
    recorder = Recorder()
    pytest.main(["-q", "-p", "no:cacheprovider", "-c", f"{folder}/pytest.ini", "--pyargs", THEIRS], plugins=[recorder])
    with open(f"{folder}/results.json", "w") as file:
        json.dump([recorder.names, recorder.failures], file)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, list[str]], dict[str, str]]:
    """The machines that each of their tests names, and every case that was run, with its failure."""
    if importlib.util.find_spec(THEIRS) is None:
        pytest.skip("this scikit-learn comes without its tests")
    folder = tmp_path_factory.mktemp("theirs")
    (folder / "pytest.ini").write_text("[pytest]\n")  # none of the settings of this project
    settings = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "SKLEARN_"))}
    settings |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "SKLEARN_SEED": "0"}
    run = [sys.executable, "-P", __file__, str(folder)]
    ended = subprocess.run(run, cwd=folder, env=settings, capture_output=True, text=True, timeout=110)
    assert (folder / "results.json").exists(), ended.stdout + ended.stderr
    names, failures = json.loads((folder / "results.json").read_text())
    return names, failures


def cases_of(key: str, failures: dict[str, str]) -> list[str]:
    """The cases that a key of ``DELIBERATE`` is about."""
    return [case for case in failures if key in (case, case.split("[")[0])]


def test_their_tests_pass_with_machines_from_here(results):
    _, failures = results
    deliberate = {case for key in DELIBERATE for case in cases_of(key, failures)}
    assert sum(not failure for failure in failures.values()) >= 60
    unexpected = {case: failure for case, failure in failures.items() if failure and case not in deliberate}
    assert not unexpected, "\n\n".join(f"{case}\n{failure}" for case, failure in unexpected.items())


@pytest.mark.parametrize("key", DELIBERATE)
def test_what_differs_on_purpose_does_differ(results, key):
    _, failures = results
    cases = cases_of(key, failures)
    assert cases, "there is no such test any more"
    assert all(failures[case] for case in cases), "passes now"


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_is_left_out_names_no_machine_with_a_kernel(results, name):
    names, failures = results
    assert names[name] == []
    assert not cases_of(name, failures)


if __name__ == "__main__":
    run_theirs(sys.argv[1])
