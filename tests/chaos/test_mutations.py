"""The mutants of the campaign's own check."""

import filecmp

import pytest

from chaos.mutations import MUTANTS, mutate
from devstack.errors import DevstackError
from devstack.program import ROOT


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_text_that_a_mutant_changes_is_still_there_and_the_change_is_python(mutant, tmp_path):
    mutate(mutant, tmp_path)
    assert not filecmp.cmp(ROOT / mutant.file, tmp_path / mutant.file, shallow=False)
    compile((tmp_path / mutant.file).read_text(), mutant.file, "exec")


def test_a_text_that_is_gone_is_an_error(tmp_path):
    mutant = type(MUTANTS[0])(name="x", file="manage.py", changes=[("no such text", "")], kinds=[], breaks="")
    with pytest.raises(DevstackError, match="0 times, not once"):
        mutate(mutant, tmp_path)
