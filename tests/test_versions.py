import maxmargin


def test_show_versions_prints_what_a_bug_report_needs(capsys):
    maxmargin.show_versions()
    printed = capsys.readouterr().out
    for word in ("python", "numpy", "scikit-learn", maxmargin.__version__, maxmargin.core_info()["instruction_set"]):
        assert word in printed
