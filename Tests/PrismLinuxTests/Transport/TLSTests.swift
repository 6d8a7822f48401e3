import Foundation
import PrismBase
import PrismConfig
import PrismCurl
import PrismLinux
import PrismProtocol
import PrismTestSupport
import Testing

/// Certificates made by openssl, a server of Python's ssl module: nothing of ours on the other side.
@Suite("TLS", .serialized, .timeLimit(.minutes(2)))
struct TLSTests {
  private let folder = TemporaryFolder()

  private func openssl(_ arguments: String...) async throws {
    let (output, status) = try await ChildProcess.run(["openssl"] + arguments)
    try #require(status == 0, "openssl \(arguments): \(output)")
  }

  private func makeAuthority(_ name: String) async throws {
    try await openssl(
      "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
      "/CN=\(name)", "-keyout", folder("\(name).key"), "-out", folder("\(name).pem"))
  }

  private func makeCertificate(_ name: String, by authority: String, host: String = "127.0.0.1", days: Int = 2)
    async throws
  {
    try await openssl(
      "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=\(name)", "-keyout",
      folder("\(name).key"), "-out", folder("\(name).csr"))
    let san = host.first?.isNumber == true ? "IP:\(host)" : "DNS:\(host)"
    try folder.write("subjectAltName=\(san)\n", to: "\(name).ext")
    try await openssl(
      "x509", "-req", "-in", folder("\(name).csr"), "-CA", folder("\(authority).pem"), "-CAkey",
      folder("\(authority).key"), "-CAcreateserial", "-days", String(days), "-extfile", folder("\(name).ext"), "-out",
      folder("\(name).pem"))
  }

  /// Prints its port, then answers every POST 200.
  private static let script = """
    import http.server, ssl, sys
    folder, name, client_ca, most = sys.argv[1:5]
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200); self.send_header("Content-Length", "0"); self.end_headers()
        def log_message(self, *a): pass
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/{name}.pem", f"{folder}/{name}.key")
    if most == "1.1":
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_alpn_protocols(["h2", "http/1.1"])
    if most == "1.2": context.maximum_version = ssl.TLSVersion.TLSv1_2
    if client_ca:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(f"{folder}/{client_ca}.pem")
    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, *a): pass
        def finish_request(self, request, address):
            super().finish_request(context.wrap_socket(request, server_side=True), address)
    server = Server(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
    """

  private func withServer(
    _ name: String, clientAuthority: String = "", mostVersion: String = "",
    _ body: (_ url: String) async throws -> Void
  ) async throws {
    let child = try ChildProcess(["python3", "-c", Self.script, folder.path, name, clientAuthority, mostVersion])
    defer { child.end() }
    let port = try #require(UInt16(await child.nextLine()), "the TLS server did not start")
    try await body("https://127.0.0.1:\(port)")
  }

  private func request(_ url: String, ca: String? = nil, client: String? = nil) -> TransferRequest {
    var request = TransferRequest(url: url, headers: [], body: [1, 2, 3], timeout: .seconds(20))
    request.tls = .init(caFile: held(ca, "pem"), certFile: held(client, "pem"), keyFile: held(client, "key"))
    return request
  }

  private func held(_ name: String?, _ suffix: String) -> HeldFile? {
    guard let name else { return nil }
    let path = folder("\(name).\(suffix)")
    return (try? SmallFile.read(path)).map { HeldFile(path: path, content: Secret($0)) }
  }

  private func status(_ answer: PostAnswer) -> Int? {
    if case .response(let status, _, _) = answer.outcome { status } else { nil }
  }

  private func failure(_ answer: PostAnswer) -> PostAnswer.Failure? {
    if case .failure(let failure, _) = answer.outcome { failure } else { nil }
  }

  @Test("a private CA is trusted where it is named, and only it")
  func privateAuthority() async throws {
    try await makeAuthority("ca")
    try await makeAuthority("other")
    try await makeCertificate("server", by: "ca")
    try await withServer("server") { url in
      let transport = CurlTransport()
      #expect(status(await transport.post(request(url, ca: "ca"))) == 200)
      for ca in ["other", nil] {
        let refused = await transport.post(request(url, ca: ca))
        #expect(failure(refused) == .tls, "\(refused)")
        #expect(!refused.mayHaveLeft && refused.bytesSent == 0)
      }
    }
  }

  @Test("a server that prefers HTTP/2 and speaks HTTP/1.1 gets HTTP/1.1")
  func protocolOfTransfers() async throws {
    try await makeAuthority("ca")
    try await makeCertificate("server", by: "ca")
    try await withServer("server") { url in
      let transport = CurlTransport()
      for _ in 0..<2 { #expect(status(await transport.post(request(url, ca: "ca"))) == 200) }
    }
  }

  @Test(
    "a certificate for another host or past its day is refused", arguments: [("example.org", 2), ("127.0.0.1", -1)])
  func wrongCertificate(host: String, days: Int) async throws {
    try await makeAuthority("ca")
    try await makeCertificate("server", by: "ca", host: host, days: days)
    try await withServer("server") { url in
      let answer = await CurlTransport().post(request(url, ca: "ca"))
      #expect(failure(answer) == .tls, "\(answer)")
      #expect(!answer.mayHaveLeft)
      guard case .failure(_, let detail) = answer.outcome else { return }
      #expect(detail.contains("the certificate is of CN = server, signed by CN = ca, valid from 2"), "\(detail)")
    }
  }

  @Test("plain HTTP behind https, and TLS behind http, are said in words")
  func wrongScheme() async throws {
    let plain = try ChildProcess([
      "python3", "-uc",
      "import http.server as h\ns = h.HTTPServer(('127.0.0.1', 0), h.BaseHTTPRequestHandler)\n"
        + "print(s.server_port)\ns.serve_forever()",
    ])
    defer { plain.end() }
    let port = try #require(UInt16(await plain.nextLine()))
    let answer = await CurlTransport().post(request("https://127.0.0.1:\(port)"))
    guard case .failure(.tls, let detail) = answer.outcome else {
      Issue.record("\(answer)")
      return
    }
    #expect(detail.contains("does not speak TLS, but perhaps plain HTTP"), "\(detail)")
  }

  @Test("TLS below 1.2 is refused")
  func oldVersion() async throws {
    try await makeAuthority("ca")
    try await makeCertificate("server", by: "ca")
    try await withServer("server", mostVersion: "1.1") { url in
      #expect(failure(await CurlTransport().post(request(url, ca: "ca"))) == .tls)
    }
  }

  @Test("a client certificate opens a door that stays shut without one", arguments: ["", "1.2"])
  func clientCertificate(mostVersion: String) async throws {
    try await makeAuthority("ca")
    try await makeCertificate("server", by: "ca")
    try await makeCertificate("client", by: "ca")
    try await withServer("server", clientAuthority: "ca", mostVersion: mostVersion) { url in
      let transport = CurlTransport()
      #expect(status(await transport.post(request(url, ca: "ca", client: "client"))) == 200)
      // In TLS 1.3 the refusal comes after the request: as an alert, or as a closed connection.
      let refused = failure(await transport.post(request(url, ca: "ca")))
      #expect(refused == .tls || refused == .reset)
    }
  }

  @Test("a rotated CA file is in force with the next packet, on the same transport")
  func rotation() async throws {
    try await makeAuthority("ca")
    try await makeAuthority("other")
    try await makeCertificate("server", by: "ca")
    try await withServer("server") { url in
      let transport = CurlTransport()
      #expect(status(await transport.post(request(url, ca: "ca"))) == 200)
      try FileManager.default.removeItem(atPath: folder("ca.pem"))
      try FileManager.default.copyItem(atPath: folder("other.pem"), toPath: folder("ca.pem"))
      #expect(failure(await transport.post(request(url, ca: "ca"))) == .tls)
    }
  }

  @Test("a file without a CA certificate trusts no server, and nothing is sent")
  func noCertificate() async throws {
    var request = request("https://127.0.0.1:1")
    request.tls.caFile = HeldFile(path: "/ca.pem", content: Secret(Array("no certificate".utf8)))
    let answer = await CurlTransport().post(request)
    guard case .failure = answer.outcome else { return #expect(Bool(false), "\(answer)") }
    #expect(!answer.mayHaveLeft)
  }

  @Test("a key that asks for a passphrase fails instead of waiting for a terminal")
  func encryptedKey() async throws {
    try await makeAuthority("ca")
    try await makeCertificate("server", by: "ca")
    try await makeCertificate("client", by: "ca")
    try await openssl(
      "ec", "-in", folder("client.key"), "-aes128", "-passout", "pass:secret", "-out", folder("locked.key"))
    try FileManager.default.copyItem(atPath: folder("client.pem"), toPath: folder("locked.pem"))
    try await withServer("server", clientAuthority: "ca") { url in
      #expect(failure(await CurlTransport().post(request(url, ca: "ca", client: "locked"))) == .tls)
    }
  }
}
