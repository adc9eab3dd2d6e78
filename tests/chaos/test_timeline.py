"""The picture of a campaign."""

from xml.etree import ElementTree

from chaos.sampler import Sample
from chaos.timeline import COLUMNS, draw

SVG = "{http://www.w3.org/2000/svg}"


def sample(second):
    return Sample(1_000_000 + second / 2, second % 7, 5_000 if second == 600 else 1, 0.5, second, second, second)


def test_ten_minutes_are_one_picture_that_keeps_every_peak(tmp_path):
    samples = [sample(second) for second in range(1200) if not 300 < second < 320]  # ten seconds without a database
    memory = [("worker-1", [(one.at, 80.0) for one in samples])]
    faults = [(1_000_010.0, 1_000_011.0, "kill worker-1"), (1_000_020.0, 1_000_020.0, "terminate-backends <all>")]
    draw(tmp_path / "new" / "chaos.svg", "600 s & more", samples, memory, faults)
    picture = ElementTree.parse(tmp_path / "new" / "chaos.svg").getroot()
    texts = [text.text for text in picture.iter(f"{SVG}text")]
    assert {"600 s & more", "published", "worker-1", "10,000", "0 s", "540 s"} <= {*texts}
    lines = [line.get("points").split() for line in picture.iter(f"{SVG}polyline")]
    assert len(lines) == 2 * 7  # each is broken once
    assert all(len(points) <= COLUMNS for points in lines)
    pending = [float(point.split(",")[1]) for points in lines[8:10] for point in points]
    assert min(pending) < 200 < sorted(pending)[1]  # the one moment with 5,000 rows
    assert [title.text for title in picture.iter(f"{SVG}title")] == ["kill worker-1", "terminate-backends <all>"]


def test_no_samples_no_picture(tmp_path):
    draw(tmp_path / "chaos.svg", "", [sample(1)], [], [])
    assert not (tmp_path / "chaos.svg").exists()
