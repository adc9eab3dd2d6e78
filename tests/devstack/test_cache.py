import stat

import pytest

from devstack.cache import build_once
from devstack.errors import DevstackError


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "pinpromo"


def test_it_is_built_once(cache):
    built = []

    def build(folder):
        built.append(folder)
        (folder / "file").write_text("made")

    assert [build_once("thing", build), build_once("thing", build)] == [cache / "thing"] * 2
    assert ((cache / "thing" / "file").read_text(), len(built)) == ("made", 1)
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700


def test_a_failed_build_leaves_nothing(cache):
    def fail(folder):
        (folder / "half").touch()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        build_once("thing", fail)
    assert [path.name for path in cache.iterdir()] == ["thing.lock"]


def test_what_a_killed_build_left_is_cleared(cache):
    (cache / "thing.new-killed").mkdir(parents=True)
    build_once("thing", lambda folder: None)
    assert sorted(path.name for path in cache.iterdir()) == ["thing", "thing.lock"]


def test_a_cache_that_cannot_be_written_is_explained(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(DevstackError, match=r"cannot write the cache .* set XDG_CACHE_HOME"):
        build_once("thing", lambda folder: None)
