"""The image is never built where the tests run, so what can be told from its files is told here."""

from tests.programs import ROOT


def copied():
    """Yield what the Dockerfile copies from the build context."""
    for line in (ROOT / "Dockerfile").read_text().splitlines():
        if line.startswith("COPY ") and "--from" not in line:
            yield from line.split()[1:-1]


def test_everything_that_is_copied_exists_and_reaches_the_builder():
    let_through = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    sources = list(copied())

    assert "pinpromo" in sources
    for source in sources:
        assert (ROOT / source).exists(), source
        assert source.partition("/")[0] in let_through, source
