"""Apache Kafka's artefacts, brought by Maven into the user's cache once."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from devstack.cache import build_once, cache_directory
from devstack.errors import MissingToolError
from devstack.guarded import GuardedFolder

VERSION = "4.4.0"
_LOG4J = "2.25.3"  # the version that this Kafka brings, for the piece that it leaves to whoever runs it
_JAVA = 17

_POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId><artifactId>kafka</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId>
      <version>{_LOG4J}</version>
    </dependency>
  </dependencies>
</project>
"""


def missing() -> str | None:
    """What this machine lacks to run Apache Kafka, as a sentence; None if nothing."""
    lacks = []
    found = java_version()
    if found < _JAVA:
        lacks.append(f"Java {_JAVA} or newer" + (f" (there is {found})" if found else ""))
    if not shutil.which("mvn") and not (cache_directory() / _name()).exists():
        lacks.append("Maven 3 (mvn), which fetches Kafka")
    if not lacks:
        return None
    hint = f"on Debian: apt-get install openjdk-{_JAVA}-jre-headless maven"
    return f"Apache Kafka cannot be started here, this is missing: {' and '.join(lacks)} ({hint})."


def java() -> str:
    """The Java program: JAVA_HOME's, or the first on the path."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else shutil.which("java") or ""


def java_version() -> int:
    """The Java program's version; 0 if there is none."""
    try:
        said = subprocess.run([java(), "-version"], capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return 0
    version = re.search(r'version "(\d+)', said)
    return int(version[1]) if version else 0


def libraries() -> Path:
    """The folder with all jars; the first call downloads some 45 MB."""
    if sentence := missing():
        raise MissingToolError(sentence)
    return build_once(_name(), _download)


def _name() -> str:
    return f"kafka-{VERSION}"


def _download(folder: Path) -> None:
    guarded = GuardedFolder("Maven")
    try:
        (guarded.path / "pom.xml").write_text(_POM)
        command = ["mvn", "--batch-mode", "-q", "-Dstyle.color=never", "dependency:copy-dependencies"]
        arguments = ["-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
        guarded.run([shutil.which("mvn") or "mvn", *command[1:], *arguments], environ=os.environ, seconds=600)
    finally:
        guarded.close()
