import Foundation
import Glibc
import PrismBase
import PrismClient
import PrismPacket
import PrismProtocol
import PrismTestSupport
import Testing

/// Packets in files, for a machine without a network (docs/carrying.md). Nothing listens at the daemon's url.
@Suite struct CarryTests {
  static let shop = "url: URL\nmaxItem: 10\nmonitorList: [{type: sample, isUploadPayload: true}]\n"

  @Test(
    "carried reports are at the collector whole and once, and are settled by their receipts", arguments: [true, false])
  func wholeWay(collectorRuns: Bool) async throws {
    try await withHarness(namespaces: ["shop": Self.shop]) { harness in
      try await harness.startDaemon()
      _ = try await harness.client().report(
        contentsOf: (0..<35).map { Sample.report($0, in: "shop", hasPayload: true) })
      let stick = CarriedStick(harness)
      if !collectorRuns { try await stick.cutNetwork() }
      #expect(try await stick.carry() >= 1)
      if collectorRuns { try await harness.startCollector() }
      #expect(try await stick.importAll().exitCode == 0)
      #expect(try await stick.settle().exitCode == 0)
      try await harness.waitUntilSent(["shop"])
      for kind in ["meta", "payload"] { try await harness.expectArrived("shop", kind, Array(0..<35)) }
      let status = try await harness.status()
      #expect(Harness.rows(status, "shop", "meta", "delivered") == 35)
      Harness.expectIdentity(status)
      let createdTimes = try await harness.query(
        "SELECT count(*) FROM report WHERE abs(meta ->> 'CREATE_TIME' - created_time) > 0")
      #expect(createdTimes == [["0"]], "the way of a file says nothing of a device's clock")
    }
  }

  @Test("a namespace without a url is carried, and one that may not upload says why it is not")
  func withoutURL() async throws {
    let namespaces = [
      "quiet": "maxItem: 10\nmonitorList: [{type: sample}]\n",
      "held": "isUpload: false\nmonitorList: [{type: sample}]\n",
    ]
    try await withHarness(namespaces: namespaces) { harness in
      try await harness.startDaemon()
      _ = try await harness.client().report(contentsOf: (0..<5).map { Sample.report($0, in: "quiet") })
      let ran = try await harness.prismctl("carry", "--to", "\(harness.folder)/stick")
      #expect(ran.exitCode == 1 && ran.error.contains("held") && ran.error.contains("isUpload"), "\(ran.error)")
      #expect(ran.output.contains("1 packet with 5 reports"))
    }
  }

  @Test("a file that is cut stops its stream and no other, says so, and is taken when it is whole")
  func cutFile() async throws {
    try await withHarness(namespaces: ["shop": Self.shop]) { harness in
      try await harness.startDaemon()
      _ = try await harness.client().report(
        contentsOf: (0..<35).map { Sample.report($0, in: "shop", hasPayload: true) })
      let stick = CarriedStick(harness)
      try await stick.cutNetwork()
      _ = try await stick.carry()
      let first = try #require(try stick.metaFiles().first)
      let whole = try #require(FileManager.default.contents(atPath: first))
      try whole.dropLast(7).write(to: URL(filePath: first))
      let ran = try await stick.importAll()
      #expect(ran.exitCode == 1 && ran.error.contains("is a part of a packet"), "\(ran.error)")
      try await harness.expectArrived("shop", "meta", [])
      try await harness.expectArrived("shop", "payload", Array(0..<35))
      try whole.write(to: URL(filePath: first))
      #expect(try await stick.importAll().exitCode == 0)
      #expect(try await stick.settle().exitCode == 0)
      try await harness.waitUntilSent(["shop"])
      try await harness.expectArrived("shop", "meta", Array(0..<35))
    }
  }

  @Test("a receipt that another key made, or of another answer, settles nothing")
  func forged() async throws {
    try await withHarness(namespaces: ["shop": Self.shop]) { harness in
      try await harness.startDaemon()
      _ = try await harness.client().report(contentsOf: (0..<5).map { Sample.report($0, in: "shop") })
      let stick = CarriedStick(harness)
      try await stick.cutNetwork()
      _ = try await stick.carry()
      _ = try await stick.importAll()
      let good = try stick.receipts()
      try stick.write(good.map { CarriedAnswer(headers: $0.headers, status: 200, receipt: $0.receipt, body: "{}\n") })
      var ran = try await stick.settle()
      #expect(ran.exitCode == 1 && ran.output.contains("1 packet not settled"), "\(ran.output)")
      let other = try PacketReceipt(key: Secret([UInt8](repeating: 7, count: 16)))
      try stick.write(
        try good.map {
          CarriedAnswer(
            headers: $0.headers, status: 200, receipt: try other.text(for: $0.headers, answer: Array($0.body.utf8)),
            body: $0.body)
        })
      ran = try await stick.settle()
      #expect(ran.exitCode == 1 && ran.output.contains("proves nothing"), "\(ran.output)")
      let status = try await harness.status()
      #expect(
        Harness.rows(status, "shop", "meta", "delivered") == 0 && Harness.rows(status, "shop", "meta", "claimed") == 5)
      try stick.write(good)
      #expect(try await stick.settle().exitCode == 0)
      try await harness.waitUntilSent(["shop"])
    }
  }

  @Test("a refusal splits a packet, and makes a dead letter of its last row, as over the network")
  func refused() async throws {
    try await withHarness(namespaces: ["shop": Self.shop]) { harness in
      try await harness.startDaemon()
      _ = try await harness.client().report(contentsOf: (0..<2).map { Sample.report($0, in: "shop") })
      let stick = CarriedStick(harness)
      let digits = try String(contentsOfFile: "\(harness.folder)/main.key", encoding: .utf8).prefix { !$0.isWhitespace }
      let key = Secret(try #require(Hex.decode(String(digits))))
      for words in ["split in two", "dead letters"] {
        #expect(try await stick.carry() >= 1)
        let unproven = try stick.packets().map {
          CarriedAnswer(headers: $0.headers, status: 422, receipt: nil, body: "{}")
        }
        try stick.write(unproven)
        let kept = try await stick.settle()
        #expect(kept.output.contains("without the collector's proof"), "\(kept.output)")
        let refused = try stick.packets().map {
          let body = #"{"message":"no"}"#
          let verdict = try PacketReceipt(key: key, refusal: 422).text(
            for: $0.headers, answer: Array(body.utf8))
          return CarriedAnswer(headers: $0.headers, status: 422, receipt: nil, verdict: verdict, body: body)
        }
        try stick.write(refused)
        let ran = try await stick.settle()
        #expect(ran.exitCode == 0 && ran.output.contains(words), "\(ran.output)")
        try stick.clear()
      }
      try await waitUntil("both are dead letters") {
        try await Harness.rows(harness.status(), "shop", "meta", "dead") == 2
      }
      Harness.expectIdentity(try await harness.status())
    }
  }

  @Test("a reader that leaves in the middle of a file keeps nothing back: the network takes it all")
  func readerLeaves() async throws {
    let shop = "url: URL\nmaxItem: 1\nmonitorList: [{type: sample, isUploadPayload: true}]\n"
    try await withHarness(namespaces: ["shop": shop]) { harness in
      try await harness.startDaemon()
      var random = SystemRandomNumberGenerator()
      for number in 0..<12 {
        let payload = (0..<200_000).map { _ in UInt8.random(in: 0...255, using: &random) }
        let report = Report(
          ReportType("sample")!, in: NamespaceName("shop")!, meta: ["n": .int(number)], payload: payload)
        _ = try await harness.client().report(contentsOf: [report])
      }
      let words = #"printf '{"command":"carry"}\n' | nc -U \#(harness.control) | head -c 300000 | wc -c"#
      let ran = try await Programs.run("bash", ["-c", words])
      #expect(ran.output.contains("300000"), "\(ran.output)\(ran.error)")
      try await harness.startCollector()
      try await harness.waitUntilSent(["shop"])
      let rows = try await harness.query("SELECT kind, count(*), count(DISTINCT report_id) FROM report GROUP BY kind")
      #expect(rows == [["meta", "12", "12"], ["payload", "12", "12"]])
    }
  }

  @Test("kills, lost sticks, repeated steps and a network that comes back: each report arrives once")
  func history() async throws {
    let seed = Seed.next("carrying")
    var random = SeededRandom(seed: seed)
    try await withHarness(namespaces: ["shop": Self.shop]) { harness in
      try await harness.startDaemon()
      let stick = CarriedStick(harness)
      var sent = 0
      for _ in 0..<(Seed.number("PRISM_E2E_CARRY_STEPS") ?? 16) {
        switch Int.random(in: 0..<7, using: &random) {
        case 0, 1:
          let some = (sent..<sent + Int.random(in: 1...40, using: &random)).map { Sample.report($0, in: "shop") }
          _ = try await harness.client().report(contentsOf: some)
          sent += some.count
        case 2: _ = try await stick.carry()
        case 3: _ = try await stick.importAll()
        case 4: _ = try await stick.settle()
        case 5:
          try await harness.endDaemon(SIGKILL)
          try await harness.startDaemon()
        default:
          if Bool.random(using: &random) { try stick.clear() } else { try await stick.toggleNetwork() }
        }
      }
      try await stick.cutNetwork()
      try stick.clear()
      _ = try await stick.carry()
      if sent > 0 {
        #expect([0, 1].contains(try await stick.importAll().exitCode))
        _ = try await stick.settle()
      }
      try await harness.waitUntilSent(["shop"])
      try await harness.expectArrived("shop", "meta", Array(0..<sent))
      let broken = try await harness.query("SELECT count(*) FROM report WHERE chain_broken")
      #expect(broken == [["0"]], "in order")
      Harness.expectIdentity(try await harness.status())
    }
  }
}
