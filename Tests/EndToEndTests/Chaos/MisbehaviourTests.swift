import Foundation
import Glibc
import PrismConfig
import PrismCurl
import PrismHTTP
import PrismLinux
import PrismPacket
import PrismProtocol
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismEngine

@Suite("Each misbehaviour of a collector", .timeLimit(.minutes(30)))
struct MisbehaviourTests {
  static let packet = PacketID("018bcfe5-6800-7000-8000-0000000000ff")!

  static func post(
    _ url: String, timeout: Duration, caFile: HeldFile? = nil, by transport: CurlTransport = CurlTransport(),
    needsNewConnection: Bool = false
  ) async -> (PostAnswer, DeliveryOutcome.Verdict) {
    let headers = PacketHeaders(
      deviceID: "d", namespace: .prism, packetID: packet, kind: .meta, itemCount: 1, sentTime: 1,
      format: BlockFormat(cipher: .aes128GCM, keyID: "main", encoding: .gzip))
    var request = TransferRequest(
      url: "\(url)/prism/meta", headers: headers.fields,
      body: [UInt8](repeating: 7, count: 200_000), timeout: timeout)
    request.tls.caFile = caFile
    request.needsNewConnection = needsNewConnection
    let answer = await transport.post(request)
    let verdict = ResponseClass.verdict(
      answer, to: ReceiptCheck(headers, key: DeliveryRig.key, requirement: .required), now: 1_700_000_000_000)
    return (answer, verdict)
  }

  static func meaning(_ answer: DeliveryOutcome.Verdict) -> Misbehaviour.Meaning? {
    switch answer {
    case .accepted: .accepted
    case .noReceipt: .noReceipt
    case .tooLarge: .tooLarge
    case .tooOld: .tooOld
    case .unacceptable: .unacceptable
    case .misconfigured: .misconfigured
    case .outOfOrder: .unavailable
    case .unproven: .unproven
    case .unprovenRefusal: .unprovenRefusal
    case .unavailable: .unavailable
    case .unknownDictionary, .cancelled, .carried: nil
    }
  }

  @Test("there are many, and each has its own name") func names() {
    #expect(Misbehaviour.all.count >= 80)
    #expect(Set(Misbehaviour.all.map(\.name)).count == Misbehaviour.all.count)
  }

  @Test("is taken for what it is, and freezes the packet", arguments: Misbehaviour.all.filter { !$0.isStray })
  func meaning(of wrong: Misbehaviour) async {
    let server = WireServer { wire in
      var headers: [String: String] = [:]
      if wrong.moment != .beforeRequest {
        guard let head = wire.readHead() else { return }
        headers = head.headers
        if wrong.moment == .withinBody { _ = wire.read(head.bodyBytes / 2) }
        if wrong.moment == .afterRequest { _ = wire.read(head.bodyBytes) }
      }
      _ = wrong.act(.init(wire: wire, headers: headers))
    }
    var timeout = wrong.isStall ? .seconds(1) : patience
    var (answer, meaning) = await Self.post(server.url, timeout: timeout)
    // On a busy machine a second may pass before anything has left.
    while wrong.isStall, !answer.mayHaveLeft, timeout < patience {
      timeout *= 4
      (answer, meaning) = await Self.post(server.url, timeout: timeout)
    }
    server.stop()
    #expect(Self.meaning(meaning) == wrong.meaning, "\(answer)")
    // A reset at once may come before the connection is known to be open.
    #expect(answer.mayHaveLeft || wrong.moment == .beforeRequest)
    if wrong.isStall, case .failure(let failure, _) = answer.outcome { #expect(failure == .timeout) }
    if wrong.asksForAnHour, case .unavailable(_, _, let pause) = meaning { #expect(pause == .seconds(3600)) }
  }

  @Test(
    "on a kept connection is not believed, and the answer on a new one is",
    arguments: Misbehaviour.all.filter(\.isStray))
  func stray(_ wrong: Misbehaviour) async {
    let server = WireServer { wire in
      for number in 0... {
        guard let head = wire.readHead() else { return }
        let scene = Misbehaviour.Case(wire: wire, headers: head.headers)
        if number > 0 { _ = wrong.act(scene) }
        guard wire.read(head.bodyBytes) != nil else { return }
        wire.send(scene.honest)
      }
    }
    let transport = CurlTransport()
    #expect(Self.meaning(await Self.post(server.url, timeout: patience, by: transport).1) == .accepted)
    let (answer, meaning) = await Self.post(server.url, timeout: patience, by: transport)
    #expect(Self.meaning(meaning) == wrong.meaning, "\(answer)")
    #expect(answer.origin != .newConnection)
    let asked = await Self.post(server.url, timeout: patience, by: transport, needsNewConnection: true)
    #expect(Self.meaning(asked.1) == .accepted, "\(asked.0)")
    server.stop()
  }

  static let tls: [(TLSMisbehaviour, Set<PostAnswer.Failure>, mayHaveLeft: Bool)] = [
    (.certificateOfAnotherHost, [.tls], false), (.expiredCertificate, [.tls], false),
    (.certificateOfAStrangeAuthority, [.tls], false), (.plainHTTP, [.tls], false), (.garbage, [.tls], false),
    (.closedAfter(bytes: 0), [.tls, .reset, .connect], false),
    (.closedAfter(bytes: 100), [.tls, .reset, .connect], false),
    (.resetAfter(bytes: 0), [.tls, .reset, .connect], false),
    (.resetAfter(bytes: 100), [.tls, .reset, .connect], false),
    (.silentAfter(bytes: 0), [.timeout], false), (.silentAfter(bytes: 100), [.timeout], false),
  ]

  @Test("of TLS is a failure of which nothing can have left")
  func tlsMeanings() async throws {
    let folder = TemporaryFolder.make()
    let front = try await TLSFront(folder: folder) { _ in .refusal(500, "never reached") }
    for (wrong, failures, mayHaveLeft) in Self.tls {
      let server = WireServer { front.serve($0, wrong) }
      let isSilent = failures == [.timeout]
      let url = "https://127.0.0.1:\(server.port)"
      let (answer, _) = await Self.post(url, timeout: isSilent ? .seconds(1) : patience, caFile: front.authority)
      server.stop()
      guard case .failure(let failure, let detail) = answer.outcome else {
        Issue.record("\(wrong): \(answer)")
        continue
      }
      #expect(failures.contains(failure), "\(wrong): \(failure) \(detail)")
      #expect(answer.mayHaveLeft == mayHaveLeft, "\(wrong)")
    }
    await front.stop()
    try FileManager.default.removeItem(atPath: folder)
  }
}
