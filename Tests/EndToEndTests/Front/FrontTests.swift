import Foundation
import PrismClient
import PrismProtocol
import PrismTestSupport
import Testing

/// nginx between the daemon and the collector: its own answers say nothing of the reports.
@Suite(.timeLimit(.minutes(5))) struct FrontTests {
  private static let pass = "location / { proxy_pass http://COLLECTOR; }"
  private static let asksForCertificate = "ssl_client_certificate FOLDER/ca.pem; ssl_verify_client on; \(pass)"

  private static let faults: [Fault] = [
    Fault("redirect", "location / { return 301 https://$host$request_uri; }"),
    Fault("page", "location / { default_type text/html; return 200 '<html>sign in</html>'; }"),
    Fault("firewall", "location / { return 422 '<html>blocked</html>'; }"),
    Fault("small-body", "client_max_body_size 64; \(pass)"),
    Fault(
      "small-header",
      "connection_pool_size 256; client_header_buffer_size 128; large_client_header_buffers 1 300; \(pass)"),
    Fault("no-server", "location / { proxy_pass http://127.0.0.1:1; }"),
    Fault("other-path", "location / { proxy_pass http://COLLECTOR/elsewhere/; }"),
    Fault("no-certificate", asksForCertificate, client: .tls),
    Fault("expired-certificate", asksForCertificate, client: .expired),
    Fault("http-on-https", pass, client: .plainToTLS),
  ]
  /// Of one server, each at a path.
  private static let statuses = (200...599).map { "status-\($0)" }

  @Test("nothing becomes a dead letter by the answers of a proxy, and everything arrives once the proxy is mended")
  func front() async throws {
    try await withHarness(namespaces: [:]) { harness in
      let front = try await Front(harness, servers: Self.faults.count + 1)
      defer { front.stop() }
      for (index, fault) in Self.faults.enumerated() {
        try harness.write(fault.configuration(front, port: front.ports[index]), namespace: fault.namespace)
      }
      let shared = front.ports[Self.faults.count]
      for name in Self.statuses {
        try harness.write("url: http://127.0.0.1:\(shared)/\(name)\n\(Fault.types)", namespace: name)
      }
      let answers = (200...599).map { "location /status-\($0)/ { return \($0); }" }.joined(separator: " ")
      try front.write(Self.faults.map { ($0.lines, $0.client != .plain) } + [(answers, false)])
      try await harness.startCollector()
      try await front.start()
      try await harness.startDaemon()
      let names = Self.faults.map(\.namespace) + Self.statuses
      for (index, name) in names.enumerated() {
        let reports = [false, true].map { Sample.report(index, in: name, hasPayload: $0) }
        for answer in try await harness.client().report(contentsOf: reports) {
          guard case .stored = answer else { throw Failed("\(name): \(answer)") }
        }
      }
      try await harness.expectAttempts(names)
      let mended = "rewrite ^/status-[0-9]+(/.*)$ $1 break; proxy_pass http://COLLECTOR;"
      try front.write(
        Self.faults.map { (Self.pass, [.tls, .expired].contains($0.client)) } + [("location / { \(mended) }", false)])
      try await front.restart()
      #expect(try await harness.prismctl("flush").exitCode == 0)
      try await harness.waitUntilSent(names)
      let status = try await harness.status()
      Harness.expectIdentity(status)
      for name in names {
        #expect(["meta", "payload"].map { Harness.rows(status, name, $0, "delivered") } == [2, 1], "\(name)")
      }
      let arrived = try await harness.query("SELECT count(*), count(DISTINCT namespace) FROM report")
      #expect(arrived == [[String(3 * names.count), String(names.count)]])
    }
  }
}

/// A server of nginx that does not pass packets on, and the namespace whose packets it gets.
private struct Fault {
  enum Client { case plain, tls, expired, plainToTLS }
  static let types = "monitorList: [{type: sample, isUploadPayload: true}]\n"

  let namespace: String
  let lines: String
  let client: Client

  init(_ namespace: String, _ lines: String, client: Client = .plain) {
    (self.namespace, self.lines, self.client) = (namespace, lines, client)
  }

  func configuration(_ front: Front, port: UInt16) -> String {
    let certificate = client == .expired ? ", certFile: \(front.folder)/old.pem, keyFile: \(front.folder)/old.key" : ""
    let isTLS = client == .tls || client == .expired
    let tls = isTLS ? "tls: {caFile: \(front.folder)/ca.pem\(certificate)}\n" : ""
    return "url: \(isTLS ? "https" : "http")://127.0.0.1:\(port)\n\(Self.types)\(tls)"
  }
}

extension Harness {
  /// Waits until a packet of each namespace had an answer, or failed; no row may be dead or delivered.
  fileprivate func expectAttempts(_ namespaces: [String]) async throws {
    #expect(try await prismctl("flush").exitCode == 0)
    try await waitUntil("each was tried") {
      let status = try await self.status()
      return namespaces.allSatisfy { status["namespaces"]?[$0]?["lastFailure"]?.object != nil }
    }
    let status = try await status()
    for namespace in namespaces {
      for account in ["dead", "delivered", "expired"] {
        let rows = ["meta", "payload"].map { Harness.rows(status, namespace, $0, account) }
        #expect(rows == [0, 0], "\(namespace) \(account)")
      }
    }
  }
}
