import Foundation
import Glibc
import PrismProtocol
import PrismTestSupport
import Testing

/// docs/statsd-syslog.md, with the programs that send. `make sdk-check` has clients of PyPI and rsyslog.
@Suite struct MessageSenderTests {
  private static let namespaces = [
    "metrics": "{url: URL, periodicTimerSecond: 1, monitorList: [{type: statsd, reduce: {second: 1}}]}",
    "logs": "{url: URL, periodicTimerSecond: 1, monitorList: [{type: syslog}]}",
  ]

  /// The ports of statsd, syslog and the metrics.
  private typealias Ports = (statsd: UInt16, syslog: UInt16, metrics: UInt16)

  private static func withMessages(_ body: @Sendable (Harness, Ports) async throws -> Void) async throws {
    let ports: Ports = (try Harness.freePort(), try Harness.freePort(), try Harness.freePort())
    let extra = """
      statsd: {listen: "127.0.0.1:\(ports.statsd)", socket: statsd.sock}
      syslog: {listen: "127.0.0.1:\(ports.syslog)", socket: log.sock}
      metrics: {listen: \(ports.metrics)}
      """
    try await withHarness(namespaces: namespaces, extra: extra) { harness in
      try await harness.startCollector()
      try await harness.startDaemon()
      try await body(harness, ports)
    }
  }

  private static func count(_ ports: Ports, _ input: String, _ outcome: String) async throws -> Int {
    let page = try await Programs.run("curl", ["-sS", "http://127.0.0.1:\(ports.metrics)/metrics"]).output
    let head = #"prism_messages_total{input="\#(input)",outcome="\#(outcome)"} "#
    return page.split(separator: "\n").first { $0.hasPrefix(head) }.flatMap { Int($0.dropFirst(head.count)) } ?? 0
  }

  /// Sends as programs do, from one shell.
  private static let senders = #"""
    set -e
    syslog() { logger --server 127.0.0.1 --port $SYSLOG --tag "$1" "${@:2}"; }
    for n in $(seq 20); do
      syslog udp3164 --udp --rfc3164 "n $n"
      syslog udp5424 --udp --rfc5424 --id=$n "n $n"
      syslog tcp3164 --tcp --rfc3164 "n $n"
      syslog tcp5424 --tcp --rfc5424 --octet-count --msgid M --sd-id a@1 --sd-param b=\"c\" "n $n"
      logger --socket log.sock --tag unix -p local3.err "n $n"
      printf 'sales:2|c\nwait:%d|ms' $n | nc -u -q 0 127.0.0.1 $STATSD
      printf 'sales:3|c|@0.5|#shop:a' | nc -u -U -q 0 statsd.sock
    done
    printf '<14>nc: one\n<14>nc: two' | nc -N 127.0.0.1 $SYSLOG
    """#
  private static let python = """
    import logging, logging.handlers, os, socket
    places = [("pyunix", dict(address="log.sock")), ("pyudp", dict(address=("127.0.0.1", int(os.environ["SYSLOG"])))),
              ("pytcp", dict(address=("127.0.0.1", int(os.environ["SYSLOG"])), socktype=socket.SOCK_STREAM))]
    for name, place in places:
        handler = logging.handlers.SysLogHandler(**place)
        handler.append_nul = name != "pytcp"
        handler.setFormatter(logging.Formatter(name + ": %(message)s" + ("\\n" if name == "pytcp" else "")))
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        for number in range(20):
            logger.warning("n %d", number)
        handler.close()
    """

  @Test("what netcat, logger and Python's logging send arrives, each once, with its sender and its parts")
  func programs() async throws {
    try await Self.withMessages { harness, ports in
      let environment = ["STATSD": "\(ports.statsd)", "SYSLOG": "\(ports.syslog)"]
      for (program, script) in [("bash", Self.senders), ("python3", Self.python)] {
        let words = ["-c", "cd '\(harness.folder)' && exec \"$0\" -c \"$1\"", program, script]
        let ran = try await Programs.run("bash", words, environment: environment)
        try #require(ran.exitCode == 0, "\(ran.error)")
      }
      try await waitUntil("all messages are stored") { try await Self.count(ports, "syslog", "stored") == 162 }
      try await waitUntil("all samples are stored") { try await Self.count(ports, "statsd", "stored") == 60 }
      try await waitUntil("they arrived") {
        try await harness.query("SELECT count(*) FROM report WHERE type = 'syslog'") == [["162"]]
      }
      let apps = try await harness.query(
        "SELECT meta ->> 'app', count(*), count(meta ->> 'SYS_PEER_PID') FROM report WHERE type = 'syslog' GROUP BY 1 ORDER BY 1"
      )
      #expect(
        apps == [
          ["nc", "2", "0"], ["pytcp", "20", "0"], ["pyudp", "20", "0"], ["pyunix", "20", "20"], ["tcp3164", "20", "0"],
          ["tcp5424", "20", "0"], ["udp3164", "20", "0"], ["udp5424", "20", "0"], ["unix", "20", "20"],
        ])
      let part = try await harness.query(
        """
        SELECT meta ->> '$.messageId', meta ->> '$.data."a@1".b', meta ->> 'message', meta ->> 'SYS_PEER_UID' FROM report
        WHERE meta ->> 'app' = 'tcp5424' ORDER BY id LIMIT 1
        """)
      #expect(part.first?.prefix(3) == ["M", "c", "n 1"])
      let unix = try await harness.query(
        "SELECT DISTINCT meta ->> 'severity', meta ->> 'facility', meta ->> 'SYS_PEER_UID' FROM report WHERE meta ->> 'app' = 'unix'"
      )
      #expect(unix == [["err", "local3", "\(geteuid())"]])
      try await waitUntil("the windows arrived") { try await Self.sums(harness) == ["sales 40 160", "wait 20 210"] }
      Harness.expectIdentity(try await harness.status())
    }
  }

  /// Of each metric: samples, and the sum.
  private static func sums(_ harness: Harness) async throws -> [String] {
    try await harness.query(
      """
      SELECT meta ->> 'metric', sum(meta ->> '$.REDUCED.count'), sum(meta ->> '$.REDUCED.fields.value.sum') FROM report
      WHERE type = 'statsd' GROUP BY 1 ORDER BY 1
      """
    ).map { $0.map { $0.hasSuffix(".0") ? String($0.dropLast(2)) : $0 }.joined(separator: " ") }
  }

  @Test("samples that are stored count once over a kill, and an orderly end loses no sample") func kill() async throws {
    try await Self.withMessages { harness, ports in
      let script = #"for n in $(seq 50); do printf 'sales:1|c' | nc -u -U -q 0 statsd.sock; done"#
      for (round, signal) in [SIGKILL, SIGTERM, SIGKILL].enumerated() {
        let ran = try await Programs.run("bash", ["-c", "cd '\(harness.folder)' && \(script)"])
        try #require(ran.exitCode == 0, "\(ran.error)")
        if signal == SIGKILL {
          try await waitUntil("the samples of round \(round) are stored") {
            try await Self.count(ports, "statsd", "stored") == 50
          }
        }
        try await harness.endDaemon(signal)
        try await harness.startDaemon()
      }
      try await waitUntil("the windows arrived") { try await Self.sums(harness) == ["sales 150 150"] }
    }
  }

  @Test("what the kernel drops while the daemon is stopped is counted, and doctor names it") func dropped() async throws
  {
    try await Self.withMessages { harness, ports in
      harness.signalDaemon(SIGSTOP)
      let sent = 20_000
      let flood = """
        import socket
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for number in range(\(sent)):
            sender.sendto(b"sales:1|c", ("127.0.0.1", \(ports.statsd)))
        """
      let ran = try await Programs.run("python3", ["-c", flood])
      harness.signalDaemon(SIGCONT)
      try #require(ran.exitCode == 0, "\(ran.error)")
      try await waitUntil("each sample is stored or counted") {
        let stored = try await Self.count(ports, "statsd", "stored")
        return try await stored + Self.count(ports, "statsd", "dropped") == sent
      }
      let dropped = try await Self.count(ports, "statsd", "dropped")
      #expect(dropped > 0)
      #expect(try await harness.status()["refused"]?["dropped statsd"]?.int == dropped)
      #expect(harness.daemonLog.components(separatedBy: "the kernel dropped datagrams").count == 2)
      let doctor = try await harness.prismctl("doctor")
      #expect(doctor.output.contains("the kernel dropped \(dropped) datagrams since the start"), "\(doctor.output)")
    }
  }
}
