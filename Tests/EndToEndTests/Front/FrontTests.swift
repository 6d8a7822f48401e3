import Foundation
import PrismClient
import PrismProtocol
import PrismTestSupport
import Testing

/// nginx, haproxy or a captive portal between the daemon and the collector: their own answers say nothing of the reports.
@Suite(.serialized, .timeLimit(.minutes(5))) struct FrontTests {
  private static let pass = "location / { proxy_pass http://COLLECTOR; }"
  private static let asksForCertificate = "ssl_client_certificate FOLDER/ca.pem; ssl_verify_client on; \(pass)"

  private static let nginx: [Fault] =
    [
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
      // A portal answers for every name: with a certificate of its own, a page, a place to sign in, or the end.
      Fault(
        "portal-certificate", "location / { return 302 https://portal.example/; }", client: .tls, certificate: "portal"),
      Fault("portal-redirect", "location / { return 302 http://portal.example/login?url=$request_uri; }"),
      Fault("portal-511", "location / { default_type text/html; return 511 '<html>sign in</html>'; }"),
      Fault("portal-ends", "location / { return 444; }"),
      Fault(
        "portal-json",
        "location / { default_type application/json; return 200 '{\"message\":\"ok\",\"duplicate\":true}'; }"),
    ] + (200...599).map { Fault("status-\($0)", "location / { return \($0); }") }

  private static let haproxy: [Fault] =
    [
      Fault("no-server", "server c 127.0.0.1:1"),
      Fault("server-down", "option httpchk GET /nowhere; server c COLLECTOR check inter 100ms fall 1"),
      Fault("deny", "http-request deny; server c COLLECTOR"),
      Fault("tarpit", "timeout tarpit 100ms; http-request tarpit deny_status 500; server c COLLECTOR"),
      Fault("reject", "tcp-request connection reject; server c COLLECTOR"),
      Fault("silent-drop", "http-request reject; server c COLLECTOR"),
      Fault("gone", "http-request deny deny_status 410; server c COLLECTOR"),
      Fault("login", "http-request auth realm portal; server c COLLECTOR"),
      Fault(
        "page", "http-request return status 200 content-type text/html string \"<html></html>\"; server c COLLECTOR"),
      Fault("other-scheme", "http-request redirect scheme https; server c COLLECTOR"),
      Fault("too-many", "http-request deny deny_status 429; server c COLLECTOR"),
      Fault("plain-to-tls", "server c COLLECTOR ssl verify required ca-file FOLDER/ca.pem"),
      Fault("answer-refused", "http-response deny; server c COLLECTOR"),
    ]

  @Test(
    "nothing becomes a dead letter by the answers of a proxy, and everything arrives once the proxy is mended",
    arguments: [(Front.Program.nginx, nginx), (.haproxy, haproxy)])
  fileprivate func front(_ program: Front.Program, _ faults: [Fault]) async throws {
    try await withHarness(namespaces: [:]) { harness in
      let front = try await Front(program, harness, servers: faults.count)
      defer { front.stop() }
      for (index, fault) in faults.enumerated() {
        try harness.write(fault.configuration(front, port: front.ports[index]), namespace: fault.namespace)
      }
      try front.write(faults.map { ($0.lines, $0.certificate) })
      try await harness.startCollector()
      try await front.start()
      try await harness.startDaemon()
      let names = faults.map(\.namespace)
      for (index, name) in names.enumerated() {
        let reports = [false, true].map { Sample.report(index, in: name, hasPayload: $0) }
        for answer in try await harness.client().report(contentsOf: reports) {
          guard case .stored = answer else { throw Failed("\(name): \(answer)") }
        }
      }
      try await harness.expectAttempts(names)
      let mended = program == .nginx ? Self.pass : "server c COLLECTOR"
      try front.write(faults.map { (mended, $0.client.speaksTLS ? "server" : nil) })
      try await front.restart()
      #expect(try await harness.prismctl("flush").exitCode == 0)
      try await harness.waitUntilSent(names)
      let status = try await harness.status()
      Harness.expectIdentity(status)
      for name in names {
        #expect(["meta", "payload"].map { Harness.rows(status, name, $0, "delivered") } == [2, 1], "\(name)")
      }
      // One packet got through, and its receipt did not.
      let arrived = try await harness.query("SELECT count(*), count(DISTINCT namespace) FROM report")
      #expect(arrived == [[String(3 * names.count), String(names.count)]])
    }
  }
}

/// A server that does not pass packets on, and the namespace whose packets it gets.
private struct Fault: Sendable, CustomTestStringConvertible {
  enum Client {
    case plain, tls, expired, plainToTLS
    var speaksTLS: Bool { self == .tls || self == .expired }
  }
  static let types = "monitorList: [{type: sample, isUploadPayload: true}]\n"

  let namespace: String
  let lines: String
  let client: Client
  /// Of the server; nil: it speaks plain HTTP.
  let certificate: String?
  var testDescription: String { namespace }

  init(_ namespace: String, _ lines: String, client: Client = .plain, certificate: String = "server") {
    (self.namespace, self.lines, self.client) = (namespace, lines, client)
    self.certificate = client == .plain ? nil : certificate
  }

  func configuration(_ front: Front, port: UInt16) -> String {
    let certificate = client == .expired ? ", certFile: \(front.folder)/old.pem, keyFile: \(front.folder)/old.key" : ""
    let tls = client.speaksTLS ? "tls: {caFile: \(front.folder)/ca.pem\(certificate)}\n" : ""
    return "url: \(client.speaksTLS ? "https" : "http")://127.0.0.1:\(port)\n\(Self.types)\(tls)"
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
