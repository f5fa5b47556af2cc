"""Files that are mapped while another process appends to them."""

from pathlib import Path

from inlink.store.mapped import Mapped


def test_bytes_are_read_again_after_they_were_unloaded(tmp_path: Path):
    (tmp_path / "file").write_bytes(bytes(range(200)) * 500)
    mapped = Mapped(tmp_path / "file")
    before = mapped.map(100_000).tobytes()
    mapped.unload()
    assert mapped.map(100_000).tobytes() == before == (tmp_path / "file").read_bytes()
    mapped.close()
    mapped.unload()
