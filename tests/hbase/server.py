"""A real HBase on this machine: ZooKeeper, master, region server and Thrift server in one JVM, which can be killed and started again."""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

HERE = Path(__file__).parent
SOURCES = ("LocalHBase.java", "KeyValueCodec.java")
_OPENS = ("java.lang", "java.nio", "sun.nio.ch", "java.util", "java.util.concurrent")
_EXPORTS = ("java.base/jdk.internal.misc", "java.security.jgss/sun.security.krb5")
_SECONDS = 240


def free_port() -> int:
    """A port of the loopback interface that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class HBaseServer:
    """`jars` has HBase's (`make hbase-setup`), `folder` becomes the server's; data stays there when it is killed."""

    def __init__(self, jars: Path, folder: Path) -> None:
        self._folder = folder
        self.thrift_port, self.zookeeper_port = free_port(), free_port()
        self._process: subprocess.Popen[bytes] | None = None
        classes = folder / "classes"
        conf = folder / "conf"
        for path in (classes, conf):
            path.mkdir(parents=True)
        sources = [str(HERE / name) for name in SOURCES]
        subprocess.run(["javac", "-proc:none", "-d", str(classes), "-cp", f"{jars}/*", *sources], check=True, capture_output=True)
        (conf / "hbase-site.xml").write_text(self._site(), encoding="utf-8")
        self._classpath = f"{conf}:{classes}:{jars}/*"

    def _site(self) -> str:
        addresses = {f"hbase.{role}.{what}": "127.0.0.1" for role in ("master", "regionserver") for what in ("ipc.address", "hostname")}
        values = {
            "hbase.cluster.distributed": "false",
            "hbase.rootdir": f"file://{self._folder}/data",
            "hbase.tmp.dir": f"{self._folder}/tmp",
            "hbase.zookeeper.property.dataDir": f"{self._folder}/zookeeper",
            "hbase.zookeeper.property.clientPort": str(self.zookeeper_port),
            "hbase.zookeeper.property.clientPortAddress": "127.0.0.1",
            "hbase.zookeeper.quorum": "127.0.0.1",
            "hbase.unsafe.stream.capability.enforce": "false",
            "hbase.localcluster.assign.random.ports": "true",
            "hbase.unsafe.regionserver.hostname": "127.0.0.1",
            "hbase.wal.provider": "filesystem",
            **addresses,
            **{f"hbase.{role}.info.port": "-1" for role in ("master", "regionserver", "thrift")},
        }
        rows = (f"<property><name>{name}</name><value>{escape(value)}</value></property>" for name, value in values.items())
        return f"<configuration>{''.join(rows)}</configuration>"

    def start(self) -> None:
        """Returns when the Thrift server answers. Raises `RuntimeError` with the end of the log if it does not."""
        ready = self._folder / "ready"
        ready.unlink(missing_ok=True)
        opens = [word for name in _OPENS for word in ("--add-opens", f"java.base/{name}=ALL-UNNAMED")]
        exports = [word for name in _EXPORTS for word in ("--add-exports", f"{name}=ALL-UNNAMED")]
        command = ["java", "-Xmx512m", "-XX:+UseSerialGC", *opens, *exports, "-cp", self._classpath, "LocalHBase"]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen([*command, str(self.thrift_port), str(ready)], stdout=log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            if ready.exists() and self._answers():
                return
            time.sleep(0.5)
        self.kill()
        raise RuntimeError(f"HBase did not start: {(self._folder / 'log').read_text(errors='replace')[-3000:]}")

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.thrift_port), timeout=2):
                return True
        except OSError:
            return False

    def kill(self) -> None:
        """End it as a power cut would (SIGKILL)."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def connect(self) -> Any:
        """A connection of happybase."""
        from happybase import Connection

        return Connection("127.0.0.1", self.thrift_port, timeout=60_000)
