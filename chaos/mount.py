"""Mounts a small file system until SIGTERM: `python mount.py FOLDER MEGABYTES UID GID`.

It runs under a guard, so that the mount is gone whatever ends the campaign. It imports the standard library only and
is run by path.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

READY = "mounted"


def main() -> int:
    """Mount, wait, unmount."""
    folder, megabytes, uid, gid = sys.argv[1:]
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    Path(folder).parent.chmod(0o711)
    Path(folder).mkdir()
    options = f"size={megabytes}m,mode=0700,uid={uid},gid={gid}"
    if code := subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=False).returncode:
        return code
    try:
        tablespace = Path(folder) / "tablespace"
        tablespace.mkdir()
        os.chown(tablespace, int(uid), int(gid))
        print(READY, flush=True)
        signal.sigwait({signal.SIGTERM})
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
