import PrismTestSupport
import Testing

@testable import PrismInputs

/// Hostile and broken bytes against the reader of OTLP.
@Suite struct OTLPBoundsTests {
  @Test(
    "a body that is not protobuf is refused with 400",
    arguments: [
      [0x0A], [0x0A, 0x05, 0x01], [0x0B], [0x0C], [0x00], [0x07],
      [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
      [0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F],
    ] as [[UInt8]]) func malformed(body: [UInt8])
  {
    let fault = #expect(throws: OTLPFault.self) { try OTLPRequest(protobuf: body, .logs) }
    #expect(fault?.status == 400)
  }

  @Test(
    "a body that is not a JSON request is refused with 400",
    arguments: [
      "", "[]", "{", #"{"resourceLogs":{}}"#, #"{"resourceLogs":[1]}"#,
      #"{"resourceLogs":[{"scopeLogs":[{"logRecords":[7]}]}]}"#,
    ]) func malformedJSON(body: String)
  {
    let fault = #expect(throws: OTLPFault.self) { try OTLPRequest(json: Array(body.utf8), .logs) }
    #expect(fault?.status == 400)
  }

  @Test("a request without records is taken", arguments: OTLPSignal.allCases) func empty(signal: OTLPSignal) throws {
    #expect(try OTLPRequest(protobuf: [], signal).recordCount == 0)
    #expect(try OTLPRequest(json: Array("{}".utf8), signal).recordCount == 0)
  }

  @Test("a record of too many levels is left out, the others are taken") func deepRecord() throws {
    var value: [UInt8] = []
    value.append(field: 1, bytes: Array("core".utf8))
    for _ in 0..<30 {  // AnyValue → ArrayValue → AnyValue
      var list: [UInt8] = []
      list.append(field: 1, bytes: value)
      value = []
      value.append(field: 5, bytes: list)
    }
    var deep: [UInt8] = []
    deep.append(field: 5, bytes: value)
    var plain: [UInt8] = []
    plain.append(field: 3, bytes: Array("INFO".utf8))
    let request = try OTLPRequest(protobuf: Self.logs([plain, deep, plain]), .logs)
    #expect(request.recordCount == 2)
    #expect(request.unusable == ["over 60 levels deep": 1])
  }

  @Test("thousands of levels cost no stack") func bottomless() throws {
    var body: [UInt8] = []
    for _ in 0..<5_000 {
      var list: [UInt8] = []
      list.append(field: 1, bytes: body)
      body = []
      body.append(field: 5, bytes: list)
    }
    var record: [UInt8] = []
    record.append(field: 5, bytes: body)
    #expect(try OTLPRequest(protobuf: Self.logs([record]), .logs).unusable.values.reduce(0, +) == 1)
  }

  @Test("over 10,000 records are refused with 413") func tooMany() {
    let records = [[UInt8]](repeating: [], count: OTLPLimits.recordsMax + 1)
    let fault = #expect(throws: OTLPFault.self) { try OTLPRequest(protobuf: Self.logs(records), .logs) }
    #expect(fault?.status == 413)
  }

  @Test("a list whose elements came apart is one list; of a choice the last counts") func interleaved() throws {
    var record: [UInt8] = []
    let attribute = Self.attribute("a", "1")
    record.append(field: 6, bytes: attribute)
    record.append(field: 3, bytes: Array("INFO".utf8))
    record.append(field: 6, bytes: attribute)
    var body: [UInt8] = []
    body.append(field: 1, bytes: Array("first".utf8))
    body.append(field: 2, varint: 1)
    record.append(field: 5, bytes: body)
    let members = try #require(
      try OTLPRequest(protobuf: Self.logs([record]), .logs).groups.first?.records.first?.members)
    let pair = #"{"key":"a","value":{"stringValue":"1"}}"#
    #expect(
      String(decoding: members, as: UTF8.self)
        == #""severityText":"INFO","body":{"boolValue":true},"attributes":[\#(pair),\#(pair)]"#)
  }

  @Test("bytes that are not UTF-8 become replacement characters; control characters are escaped") func badText() throws
  {
    var record: [UInt8] = []
    record.append(field: 3, bytes: [0x41, 0xFF, 0x01])
    let members = try #require(
      try OTLPRequest(protobuf: Self.logs([record]), .logs).groups.first?.records.first?.members)
    #expect(String(decoding: members, as: UTF8.self) == "\"severityText\":\"A\u{FFFD}\\u0001\"")
  }

  @Test("no random change of a request traps", arguments: OTLPVectorTests.vectors)
  func randomChanges(vector: OTLPVectorTests.Vector) {
    var random = SeededRandom(seed: SeededRandom.announcedSeed("PrismInputsTests"))
    for _ in 0..<2_000 {
      var body = vector.protobuf
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        body[Int.random(in: 0..<body.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      if Bool.random(using: &random) { body.removeLast(Int.random(in: 0..<body.count, using: &random)) }
      guard let request = try? OTLPRequest(protobuf: body, vector.signal) else { continue }
      for record in request.groups.flatMap(\.records) {
        #expect(throws: Never.self) { try JSONCheck.parse(record.members) }
      }
    }
  }

  static func attribute(_ key: String, _ text: String) -> [UInt8] {
    var value: [UInt8] = []
    value.append(field: 1, bytes: Array(text.utf8))
    var result: [UInt8] = []
    result.append(field: 1, bytes: Array(key.utf8))
    result.append(field: 2, bytes: value)
    return result
  }

  static func logs(_ records: [[UInt8]]) -> [UInt8] {
    var scope: [UInt8] = []
    for record in records { scope.append(field: 2, bytes: record) }
    var resource: [UInt8] = []
    resource.append(field: 2, bytes: scope)
    var result: [UInt8] = []
    result.append(field: 1, bytes: resource)
    return result
  }
}
