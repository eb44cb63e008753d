"""Every solver of the table can be named on the command line."""

import maxmargin
from maxmargin.cli.train import SolverName
from maxmargin.solvers import SOLVERS


def test_all_solvers_have_a_name():
    assert {name.value for name in SolverName} == {"auto", *SOLVERS}


def test_newton_is_taken_at_its_word(cli, spam):
    cli("train", spam, "--solver", "newton", "--C", "1", "--model", "m.safetensors")
    assert maxmargin.load("m.safetensors").machine.solver == "newton"


def test_a_solver_that_cannot_solve_it_says_what_it_lacks(cli, spam):
    refused = cli("train", spam, "--solver", "proximal_newton", "--C", "1", code=3)
    assert "it needs penalty 'l1'" in refused.output
