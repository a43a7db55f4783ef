"""A server of HTTP that stalls, on the loopback interface."""

import http.server
import threading

import pytest

from dcme_w2v.files import opening

pytest.importorskip("requests")


class Stalling(http.server.BaseHTTPRequestHandler):
    """Answers in part, or not at all, until the test is over."""

    over = threading.Event()

    def do_GET(self):
        if "part" in self.path:
            self.send_response(200)
            self.send_header("Content-Length", "100000")
            self.end_headers()
            self.wfile.write(b"a\ttea leaf\n" * 100)
            self.wfile.flush()
        self.over.wait(60)

    def log_message(self, *args):
        """Print nothing."""


@pytest.mark.parametrize(
    "line", ["vocab {} -o o", "classify train {} -o o", "scdv fit {} --vectors v -o o"]
)
@pytest.mark.parametrize("path", ["part", "nothing"])
def test_a_server_that_stalls_is_one_line_after_the_limit(cli, monkeypatch, line, path):
    monkeypatch.setattr(opening, "STALL_SECONDS", 0.5)
    Stalling.over.clear()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stalling) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            if "scdv" in line:
                cli("train - -o v --min-count 1 --quiet", stdin="tea leaf boat\n" * 50)
            said = cli.error(f"{line.format(f'http://127.0.0.1:{server.server_port}/{path}')}")
            assert "the server sent nothing for 0.5 s; try again, or download the file" in said
        finally:
            Stalling.over.set()
            server.shutdown()
            thread.join()
