# SPDX-License-Identifier: MIT
"""A peer that writes each answer in two pieces and leaves Nagle's algorithm on, between a host and a real agent."""
import socket
import threading


def relay(agent):
    """Between host and agent: forwards the agent's bytes as such a peer would."""
    listener = socket.create_server(("127.0.0.1", 0))

    def forward(source, target, in_two):
        try:
            while data := source.recv(65536):
                if in_two and len(data) > 16:
                    target.sendall(data[:16])
                    target.sendall(data[16:])
                else:
                    target.sendall(data)
        except OSError:
            pass
        for sock in (source, target):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def run():
        while True:
            host, _ = listener.accept()
            guest = socket.create_connection(("127.0.0.1", agent.port))
            guest.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=forward, args=(host, guest, False), daemon=True).start()
            threading.Thread(target=forward, args=(guest, host, True), daemon=True).start()

    threading.Thread(target=run, daemon=True).start()
    return listener.getsockname()[1]
