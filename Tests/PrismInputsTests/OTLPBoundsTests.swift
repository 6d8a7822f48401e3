import PrismAdmission
import PrismConfig
import PrismProtocol
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
    let fault = #expect(throws: OTLPFault.self) { try DecodedOTLP(protobuf: body, .logs) }
    #expect(fault?.status == 400)
  }

  @Test("a record of megabytes is held reduced, and so is the crash that it is: admission reads neither whole")
  func large() throws {
    let text = String(repeating: #"\u0001"#, count: 500_000)
    let record = try OTLPRecord(
      json: Array(
        #"""
        {"severityNumber":17,"attributes":[{"key":"exception.message","value":{"stringValue":"\#(text)"}},
        {"key":"exception.stacktrace","value":{"stringValue":"at f"}}]}
        """#.utf8), .logs)
    let snapshot = InputRig.snapshot { $0.daemon.otlp.exceptions = true }
    let peer = ReportingPeer(userID: 1, groupIDs: [1], processID: 1)
    let reports = OTLPReports(.logs, snapshot, idPrefix: nil, peer: peer)
    var group = OTLPRequest.Group()
    group.origin.namespace = "otel"
    var (part, index) = (InputPart(), 0)
    reports.append(record, &index, reports.place(of: group), to: &part)
    #expect(part.reports.map(\.isReduced) == [true, true] && part.beside == [1] && part.isFull)
  }

  @Test(
    "a body that is not a JSON request is refused with 400",
    arguments: [
      "", "[]", "{", #"{"resourceLogs":{}}"#, #"{"resourceLogs":[}"#, #"{"a"}"#, "{]", "{}x",
      #"{"resourceLogs":[{"scopeLogs":[{"logRecords":[7 8]}]}]}"#,
    ]) func malformedJSON(body: String)
  {
    let fault = #expect(throws: OTLPFault.self) { try DecodedOTLP(json: Array(body.utf8), .logs) }
    #expect(fault?.status == 400)
  }

  @Test("a request without records is taken", arguments: OTLPSignal.allCases) func empty(signal: OTLPSignal) throws {
    #expect(try DecodedOTLP(protobuf: [], signal).recordCount == 0)
    #expect(try DecodedOTLP(json: Array("{}".utf8), signal).recordCount == 0)
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
    let request = try DecodedOTLP(protobuf: Self.logs([plain, deep, plain]), .logs)
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
    #expect(try DecodedOTLP(protobuf: Self.logs([record]), .logs).unusable.values.reduce(0, +) == 1)
  }

  @Test("over 200,000 records are refused with 413") func tooMany() {
    let records = [[UInt8]](repeating: [], count: OTLPLimits.recordsMax + 1)
    let fault = #expect(throws: OTLPFault.self) { try DecodedOTLP(protobuf: Self.logs(records), .logs) }
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
      try DecodedOTLP(protobuf: Self.logs([record]), .logs).groups.first?.records.first?.members)
    let pair = #"{"key":"a","value":{"stringValue":"1"}}"#
    #expect(
      String(decoding: members, as: UTF8.self)
        == #""severityText":"INFO","body":{"boolValue":true},"attributes":[\#(pair),\#(pair)]"#)
  }

  private static func one(_ record: String, _ signal: OTLPSignal = .logs) throws -> JSONValue {
    let names = signal.names
    let body = #"{"\#(names.resources)":[{"\#(names.scopes)":[{"\#(names.records)":[\#(record)]}]}]}"#
    let members = try #require(try DecodedOTLP(json: Array(body.utf8), signal).groups.first?.records.first?.members)
    return try JSONCheck.parse(members)
  }

  @Test(
    "a record of which a field has another form than OTLP's is refused, with the field's name, and the others are taken",
    arguments: [
      (#"{"body":5}"#, "body", .logs), (#"{"timeUnixNano":true}"#, "timeUnixNano", .logs),
      (#"{"time_unix_nano":"abc"}"#, "timeUnixNano", .logs), (#"{"severityText":{}}"#, "severityText", .logs),
      (#"{"attributes":{"key":"a"}}"#, "attributes", .logs), (#"{"attributes":["a"]}"#, "attributes", .logs),
      (#"{"attributes":[{"key":7}]}"#, "key", .logs), (#"{"body":{"boolValue":"true"}}"#, "boolValue", .logs),
      (#"{"body":{"intValue":1.5}}"#, "intValue", .logs), (#"{"body":{"doubleValue":"x"}}"#, "doubleValue", .logs),
      (#"{"flags":1.5}"#, "flags", .logs), (#"{"name":"a","traceId":"zz"}"#, "traceId", .traces),
      (#"{"name":"a","gauge":{"dataPoints":[{"asInt":"x"}]}}"#, "asInt", .metrics),
      (#"{"name":"a","gauge":{"dataPoints":{}}}"#, "dataPoints", .metrics),
    ] as [(String, String, OTLPSignal)])
  func otherForms(record: String, field: String, signal: OTLPSignal) throws {
    let names = signal.names
    let body =
      #"{"\#(names.resources)":[{"\#(names.scopes)":[{"\#(names.records)":[\#(record),{"name":"b"},\#(record)]}]}]}"#
    let decoded = try DecodedOTLP(json: Array(body.utf8), signal)
    #expect(decoded.recordCount == 1 && decoded.unusable.values.reduce(0, +) == 2)
    #expect(decoded.unusable.keys.allSatisfy { $0.contains("`\(field)` must be") }, "\(decoded.unusable)")
  }

  @Test(
    "protobuf's JSON mapping is read in each of its forms, and stored as OTLP has it",
    arguments: [
      (
        #"{"time_unix_nano":5,"severity_text":"a","body":{"kvlist_value":{"values":[{"key":"k","value":null}]}}}"#,
        #"{"timeUnixNano":"5","severityText":"a","body":{"kvlistValue":{"values":[{"key":"k"}]}}}"#
      ),
      (
        #"{"severityNumber":"SEVERITY_NUMBER_ERROR2","body":null,"attributes":[null]}"#,
        #"{"severityNumber":18,"attributes":[]}"#
      ),
      (
        #"{"traceId":"5B8EFFF798038103D269B633813FC60C","spanId":"gMEgDJS+EXg=","x":{"a_b":null}}"#,
        #"{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"80c1200c94be1178","x":{"a_b":null}}"#
      ),
      (
        #"{"timeUnixNano":1.5e18,"traceId":"AbCd","flags":1}"#,
        #"{"timeUnixNano":"1500000000000000000","traceId":"abcd","flags":1}"#
      ),
    ]) func mapping(came: String, stored: String) throws
  { #expect(try Self.one(came).text == stored) }

  @Test("names of enumerations and both names of a field decide as numbers and JSON's names do") func facts() throws {
    let record =
      #"{"observed_time_unix_nano":1732154081000000000,"severity_number":"SEVERITY_NUMBER_FATAL","attributes":["#
      + #"{"key":"exception.type","value":{"string_value":"E"}},{"key":"event.name","value":{"stringValue":"n"}}]}"#
    let body =
      #"{"resource_logs":[{"resource":{"attributes":[{"key":"service.name","value":{"string_value":"till"}}]},"#
      + #""schema_url":"u","scope_logs":[{"scope":{"name":"s"},"log_records":[\#(record)]}]}]}"#
    let group = try #require(try DecodedOTLP(json: Array(body.utf8), .logs).groups.first)
    #expect(group.origin.serviceName == "till" && group.scope == Array(#"{"name":"s"}"#.utf8))
    let found = try #require(group.records.first)
    #expect(found.time == 1_732_154_081_000 && found.isError && found.exception.type == "E" && found.eventName == "n")
  }

  @Test(
    "one bad record costs that record, and a cut emoji not even that",
    arguments: [
      (#"{"severityText":"\ud83d"}"#, nil), ("7", "a record must be an object"), ("null", "a record must be an object"),
      (#"{"a":NaN}"#, "a value is expected"), (#"{"a":tru}"#, "a value is expected"),
      (String(repeating: #"{"a":"#, count: 70) + "1" + String(repeating: "}", count: 70), "over 60 levels deep"),
    ]) func oneBad(record: String, reason: String?) throws
  {
    let body =
      #"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"severityText":"a"},\#(record),{"severityText":"b"}]}]}]}"#
    let decoded = try DecodedOTLP(json: Array(body.utf8), .logs)
    #expect(decoded.unusable == (reason.map { [$0: 1] } ?? [:]))
    #expect(decoded.recordCount == (reason == nil ? 3 : 2))
    if reason == nil { #expect(decoded.groups[0].records[1].members == Array("\"severityText\":\"\u{FFFD}\"".utf8)) }
  }

  private static let deep = String(repeating: #"{"a":"#, count: 70) + "1" + String(repeating: "}", count: 70)

  @Test(
    "a resource or scope that can't be read costs its records, which are refused",
    arguments: [
      #"{"resource":"text","scopeLogs":[{"logRecords":[{"flags":1}]}]}"#,
      #"{"resource":\#(deep),"scopeLogs":[{"logRecords":[{"flags":1}]}]}"#,
      #"{"scopeLogs":[{"scope":7,"logRecords":[{"flags":1}]}]}"#,
      #"{"scopeLogs":[{"scope":\#(deep),"logRecords":[{"flags":1}]}]}"#,
      #"{"scopeLogs":[{"logRecords":{}}]}"#, #"{"scopeLogs":[7]}"#, #"{"scopeLogs":7}"#, "7", "null",
    ]) func badPart(part: String) throws
  {
    let good = #"{"resource":null,"scopeLogs":[{"scope":{},"logRecords":[{"flags":1}]}]}"#
    let body = #"{"resourceLogs":[\#(good),\#(part),\#(good)]}"#
    let decoded = try DecodedOTLP(json: Array(body.utf8), .logs)
    #expect(decoded.recordCount == 2 && decoded.unusable.values.reduce(0, +) == 1, "\(decoded.unusable)")
  }

  @Test("in protobuf, too: too deep, malformed, or cut short", arguments: [1, 2], [0, 1, 2])
  func badPart(field: Int, fault: Int) throws {
    var value: [UInt8] = []
    for _ in 0..<30 {
      var list: [UInt8] = []
      list.append(field: 1, bytes: value)
      value = []
      value.append(field: 5, bytes: list)
    }
    var pair: [UInt8] = []
    pair.append(field: 2, bytes: value)
    var object: [UInt8] = []
    object.append(field: field == 1 ? 1 : 3, bytes: pair)
    if fault == 1 { object = [0x0A, 0x7F, 0x01] }
    var (scope, resource): ([UInt8], [UInt8]) = ([], [])
    if field == 2, fault < 2 { scope.append(field: 1, bytes: object) }
    scope.append(field: 2, bytes: [0x10, 0x09])
    if field == 2, fault == 2 { scope += [0x12, 0x7F] }
    if field == 1, fault < 2 { resource.append(field: 1, bytes: object) }
    resource.append(field: 2, bytes: scope)
    if field == 1, fault == 2 { resource += [0x12, 0x7F] }
    var body = Self.logs([[0x10, 0x09]])
    body.append(field: 1, bytes: resource)
    body += Self.logs([[0x10, 0x09]])
    let decoded = try DecodedOTLP(protobuf: body, .logs)
    // Before the end of a scope that is cut short there is a record.
    #expect(decoded.recordCount == (field == 2 && fault == 2 ? 3 : 2) && decoded.unusable.values.reduce(0, +) == 1)
  }

  @Test("a record in protobuf that is no record of its signal costs that record") func otherSignal() throws {
    var bad: [UInt8] = []
    bad.append(field: 1, varint: 3)  // a time is of 8 bytes
    var good: [UInt8] = []
    good.append(field: 3, bytes: Array("INFO".utf8))
    let decoded = try DecodedOTLP(protobuf: Self.logs([good, bad, [0x1A, 0x7F], good]), .logs)
    #expect(decoded.recordCount == 2)
    #expect(decoded.unusable == ["not the protobuf of a record of this signal": 2])
  }

  @Test(
    "content that is not known is refused and named, and the known beside it is taken",
    arguments: [
      (#"{"resourceLog":[{}]}"#, 0, 1), (#"{"resourceSpans":[{"scopeSpans":[]}]}"#, 0, 1),
      (#"{"x":[],"y":null}"#, 0, 0),
      (#"{"resourceLogs":[{"instrumentationLibraryLogs":[{}]},{"scopeLogs":[{"logRecords":[{"flags":1}]}]}]}"#, 1, 1),
      (#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"flags":1}],"later":[1]}],"new":{"a":1}}],"z":[1]}"#, 1, 0),
      (#"{"resourceLogs":[{"scopeLogs":null}]}"#, 0, 0),
    ]) func unknown(body: String, records: Int, refused: Int) throws
  {
    let decoded = try DecodedOTLP(json: Array(body.utf8), .logs)
    #expect(decoded.recordCount == records)
    #expect(decoded.unusable.values.reduce(0, +) == refused)
  }

  @Test("a metric of many points becomes several that fit, with every point once, in order") func points() throws {
    let points = (0..<300).map { #"{"attributes":[{"key":"i","value":{"stringValue":"\#($0)"}}],"asInt":"\#($0)"}"# }
    let metric = #""name":"m","sum":{"isMonotonic":true,"dataPoints":[\#(points.joined(separator: ","))]},"unit":"1""#
    let parts = MetricParts.parts(of: Array(metric.utf8), bytesMax: 2000)
    #expect(parts.count > 5 && parts.allSatisfy { $0.count <= 2000 })
    let trees = try parts.map { try JSONCheck.parse($0) }
    #expect(trees.allSatisfy { $0["name"] == "m" && $0["unit"] == "1" && $0["sum"]?["isMonotonic"] == true })
    let found = trees.flatMap { $0["sum"]?["dataPoints"]?.array ?? [] }.map { $0["asInt"]?.string }
    #expect(found == (0..<300).map { String($0) })
    #expect(MetricParts.parts(of: Array(metric.utf8), bytesMax: 1 << 20).count == 1)
    #expect(MetricParts.parts(of: Array(metric.utf8), bytesMax: 10).count == 300)
  }

  @Test("bytes that are not UTF-8 become replacement characters; control characters are escaped") func badText() throws
  {
    var record: [UInt8] = []
    record.append(field: 3, bytes: [0x41, 0xFF, 0x01])
    let members = try #require(
      try DecodedOTLP(protobuf: Self.logs([record]), .logs).groups.first?.records.first?.members)
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
      guard let request = try? DecodedOTLP(protobuf: body, vector.signal) else { continue }
      for record in request.groups.flatMap(\.records) {
        #expect(throws: Never.self) { try JSONCheck.parse(record.members) }
      }
    }
  }

  /// A record with a text of one character.
  static func text(_ byte: UInt8, _ count: Int) -> [UInt8] {
    var record: [UInt8] = []
    record.append(field: 3, bytes: [UInt8](repeating: byte, count: count))
    return record
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
