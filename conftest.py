"""What holds for all tests and for the examples in documents."""

import signal

import pytest


@pytest.fixture(autouse=True)
def empty_folder(request, tmp_path_factory, monkeypatch):
    """Examples in documents may write files: they run in an empty folder."""
    if request.node.name.endswith(".md"):
        monkeypatch.chdir(tmp_path_factory.mktemp("example"))


@pytest.fixture(autouse=True, scope="session")
def ctrl_c_is_heard():
    """A shell that starts the tests in the background makes them ignore Ctrl-C, which some of them press."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
