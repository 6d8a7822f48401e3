import Foundation
import Glibc
import PrismConfig
import PrismHTTP
import PrismProtocol
import PrismTestSupport
import Synchronization

/// Faults of the other side of a TLS connection.
enum TLSMisbehaviour: Sendable, Hashable, CustomStringConvertible {
  case certificateOfAnotherHost, expiredCertificate, certificateOfAStrangeAuthority
  /// Only this number of the server's bytes come through, handshake included.
  case closedAfter(bytes: Int)
  case resetAfter(bytes: Int)
  case silentAfter(bytes: Int)
  case plainHTTP, garbage

  static func random(using random: inout SeededRandom) -> TLSMisbehaviour {
    let bytes = Int.random(in: 0..<3000, using: &random)
    let choice: [TLSMisbehaviour] = [
      .certificateOfAnotherHost, .expiredCertificate, .certificateOfAStrangeAuthority, .closedAfter(bytes: bytes),
      .resetAfter(bytes: bytes), .silentAfter(bytes: bytes), .plainHTTP, .garbage,
    ]
    return choice[Int.random(in: 0..<choice.count, using: &random)]
  }

  var description: String {
    switch self {
    case .certificateOfAnotherHost: "the certificate of another host"
    case .expiredCertificate: "an expired certificate"
    case .certificateOfAStrangeAuthority: "the certificate of a strange authority"
    case .closedAfter(let bytes): "closed after \(bytes) bytes"
    case .resetAfter(let bytes): "reset after \(bytes) bytes"
    case .silentAfter(let bytes): "silent after \(bytes) bytes"
    case .plainHTTP: "plain HTTP on a port of TLS"
    case .garbage: "garbage in place of a handshake"
    }
  }
}

/// Accepts connections in front of real TLS servers of several identities, and passes on as many bytes as the test
/// allows.
final class TLSFront: Sendable {
  private enum Identity: String, CaseIterable { case good, otherHost, expired, strange }

  /// The one that is to be trusted.
  let authority: HeldFile
  private let servers: [Identity: HTTPServer]

  /// - Parameter folder: for keys and certificates, made by openssl.
  init(folder: String, _ handler: @escaping HTTPServer.Handler) async throws {
    let maker = CertificateMaker(folder: folder)
    try await maker.authority("ca")
    try await maker.authority("strangers")
    let path = "\(folder)/ca.pem"
    authority = HeldFile(path: path, content: Secret(Array(try Data(contentsOf: URL(filePath: path)))))
    var servers: [Identity: HTTPServer] = [:]
    for identity in Identity.allCases {
      try await maker.certificate(
        identity.rawValue, by: identity == .strange ? "strangers" : "ca",
        host: identity == .otherHost ? "DNS:example.org" : "IP:127.0.0.1", days: identity == .expired ? -1 : 2)
      var options = HTTPServerOptions()
      options.tls = HTTPServerTLS(
        certificate: try Array(Data(contentsOf: URL(filePath: "\(folder)/\(identity.rawValue).pem"))),
        key: try Array(Data(contentsOf: URL(filePath: "\(folder)/\(identity.rawValue).key"))))
      servers[identity] = try HTTPServer(
        listener: ListeningSocket(address: "127.0.0.1:0"), options: options,
        handler: { request in
          var answer = await handler(request)
          answer.headers.append(("Connection", "close"))  // each POST meets its own fate
          return answer
        })
    }
    self.servers = servers
  }

  func stop() async { for server in servers.values { await server.stop() } }

  /// Serves one connection to its end. Blocks.
  func serve(_ wire: Wire, _ wrong: TLSMisbehaviour?) {
    switch wrong {
    case nil: pass(wire, to: .good, bytesMax: .max)
    case .certificateOfAnotherHost: pass(wire, to: .otherHost, bytesMax: .max)
    case .expiredCertificate: pass(wire, to: .expired, bytesMax: .max)
    case .certificateOfAStrangeAuthority: pass(wire, to: .strange, bytesMax: .max)
    case .closedAfter(let bytes): pass(wire, to: .good, bytesMax: bytes)
    case .resetAfter(let bytes):
      pass(wire, to: .good, bytesMax: bytes)
      wire.reset()
    case .silentAfter(let bytes): pass(wire, to: .good, bytesMax: bytes, thenSilent: true)
    case .plainHTTP: wire.send(Misbehaviour.Case.answer(200, "Prism-Receipt: none\r\n"))
    case .garbage: wire.send([UInt8](repeating: 0xAB, count: 500))
    }
  }

  private func pass(_ wire: Wire, to identity: Identity, bytesMax: Int, thenSilent: Bool = false) {
    guard let server = servers[identity], let behind = WireServer.connect(to: server.port) else { return }
    // Both ends are this thread's to close; the other one only reads from here and writes there.
    let isOver = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      Self.copy(from: wire.descriptor, to: behind, bytesMax: .max)
      shutdown(behind.descriptor, Int32(SHUT_WR))
      isOver.signal()
    }
    Self.copy(from: behind.descriptor, to: wire, bytesMax: bytesMax)
    if !thenSilent {
      shutdown(behind.descriptor, Int32(SHUT_RDWR))
      shutdown(wire.descriptor, Int32(SHUT_RD))
    }
    isOver.wait()
    close(behind.descriptor)
  }

  private static func copy(from descriptor: Int32, to wire: Wire, bytesMax: Int) {
    var (left, bytes) = (bytesMax, [UInt8](repeating: 0, count: 16 * 1024))
    while left > 0 {
      let count = recv(descriptor, &bytes, min(left, bytes.count), 0)
      guard count > 0, wire.send(Array(bytes[..<count])) else { return }
      left -= count
    }
  }
}

/// Authorities and certificates, by openssl.
struct CertificateMaker {
  let folder: String

  func authority(_ name: String) async throws {
    try await openssl(
      "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
      "/CN=\(name)", "-keyout", "\(folder)/\(name).key", "-out", "\(folder)/\(name).pem")
  }

  func certificate(_ name: String, by authority: String, host: String, days: Int) async throws {
    try await openssl(
      "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=\(name)", "-keyout",
      "\(folder)/\(name).key", "-out", "\(folder)/\(name).csr")
    try "subjectAltName=\(host)\n".write(toFile: "\(folder)/\(name).ext", atomically: true, encoding: .utf8)
    try await openssl(
      "x509", "-req", "-in", "\(folder)/\(name).csr", "-CA", "\(folder)/\(authority).pem", "-CAkey",
      "\(folder)/\(authority).key", "-CAcreateserial", "-days", String(days), "-extfile", "\(folder)/\(name).ext",
      "-out", "\(folder)/\(name).pem")
  }

  private func openssl(_ words: String...) async throws {
    let ran = try await Programs.run("openssl", words)
    guard ran.exitCode == 0 else { throw Failed("openssl \(words[0]): \(ran.error)") }
  }
}
