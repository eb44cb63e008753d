"""Examples in documents may write files: they run in an empty folder."""

import pytest


@pytest.fixture(autouse=True)
def empty_folder(request, tmp_path_factory, monkeypatch):
    if request.node.name.endswith(".md"):
        monkeypatch.chdir(tmp_path_factory.mktemp("example"))
