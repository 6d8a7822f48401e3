import PrismProtocol

extension OTLPRequest {
  /// Reads `ExportLogsServiceRequest` and its kin: resources in field 1, whose scopes are in field 2, whose records are
  /// in field 2.
  /// - Throws: 400 for what is not such a message, 413 for too many records.
  init(protobuf body: [UInt8], _ signal: OTLPSignal) throws(OTLPFault) {
    var decoder = OTLPProtobufDecoder(signal: signal)
    self = try decoder.request(body.span)
  }
}

/// Reads the records of a request one by one.
struct OTLPRecordReader {
  private let encoding: OTLPEncoding
  private let signal: OTLPSignal
  private var decoder: OTLPProtobufDecoder
  /// Records that cannot become reports under any configuration, by reason.
  private(set) var unusable: [String: Int] = [:]

  init(_ signal: OTLPSignal, _ encoding: OTLPEncoding) {
    (self.signal, self.encoding, decoder) = (signal, encoding, OTLPProtobufDecoder(signal: signal))
  }

  /// - Returns: nil if the record can't become a report.
  mutating func record(_ range: Range<Int>, of body: [UInt8]) -> OTLPRecord? {
    let reason: String
    if range.count > OTLPLimits.recordBytesMax {
      reason = "over \(OTLPLimits.recordBytesMax) bytes"
    } else if encoding == .json {
      do throws(JSONError) { return try OTLPRecord(json: Array(body[range]), signal) } catch { reason = error.reason }
    } else {
      do throws(ProtobufTranscoder.Fault) { return try decoder.record(range, body.span) } catch {
        switch error {
        case .malformed: reason = "not the protobuf of a record of this signal"
        case .tooDeep: reason = "over \(ProtobufTranscoder.depthMax) levels deep"
        case .tooLarge: reason = "over \(OTLPLimits.recordTextBytesMax) bytes as JSON"
        case .tooManyFields: reason = "over \(ProtobufTranscoder.fieldsMax) fields"
        }
      }
    }
    unusable[reason, default: 0] += 1
    return nil
  }
}

private struct OTLPProtobufDecoder {
  let signal: OTLPSignal
  var transcoder = ProtobufTranscoder()
  var result = OTLPRequest()
  var recordCount = 0, originBytes = 0

  mutating func request(_ input: Span<UInt8>) throws(OTLPFault) -> OTLPRequest {
    var reader = ProtobufReader(0..<input.count)
    while let field = try reader.nextField(input) {
      guard case .bytes(let range) = field.value, field.number == 1 else { continue }
      do throws(OTLPFault) { try resource(range, input) } catch { result.unusable[try error.ofPart, default: 0] += 1 }
    }
    return result
  }

  private mutating func resource(_ range: Range<Int>, _ input: Span<UInt8>) throws(OTLPFault) {
    var (origin, schema): (OTLPOrigin, Range<Int>?) = (OTLPOrigin(), nil)
    var (scopes, fault): ([Range<Int>], String?) = ([], nil)
    var reader = ProtobufReader(range)
    while let field = try reader.nextField(input) {
      guard case .bytes(let part) = field.value else { continue }
      switch field.number {
      case 1:
        do throws(OTLPFault) {
          origin.resource = try object(.resource, part, input)
          try attributes(1, of: part, input) { origin.take(attribute: $0, $1) }
        } catch { fault = "of a resource: \(try error.ofPart)" }
      case 2: scopes.append(part)
      case 3: schema = part
      default: break
      }
    }
    if let schema { origin.resource.addMember(schemaURL: input.extracting(schema)) }
    guard result.groups.count + scopes.count <= OTLPLimits.groupsMax else { throw .tooManyGroups }
    for scope in scopes {
      var (group, fault) = (Group(origin: origin), fault)
      do throws(OTLPFault) { try self.scope(scope, input, &group, &fault) } catch {
        result.unusable[try error.ofPart, default: 0] += 1
      }
      if let fault { result.leaveOut(&group, fault) }
      result.groups.append(group)
    }
  }

  private mutating func scope(
    _ range: Range<Int>, _ input: Span<UInt8>, _ group: inout Group, _ fault: inout String?
  ) throws(OTLPFault) {
    var schema: Range<Int>?
    var reader = ProtobufReader(range)
    while let field = try reader.nextField(input) {
      guard case .bytes(let part) = field.value else { continue }
      switch field.number {
      case 1:
        do throws(OTLPFault) { group.scope = try object(.scope, part, input) } catch {
          fault = "of a scope: \(try error.ofPart)"
        }
      case 2: try take(part, into: &group)
      case 3: schema = part
      default: break
      }
    }
    if let schema { group.scope.addMember(schemaURL: input.extracting(schema)) }
  }

  private typealias Group = OTLPRequest.Group

  private mutating func take(_ range: Range<Int>, into group: inout Group) throws(OTLPFault) {
    recordCount += 1
    guard recordCount <= OTLPLimits.recordsMax else { throw .tooManyRecords }
    group.records.append(range)
  }

  /// - Throws: the record can't become a report.
  mutating func record(_ range: Range<Int>, _ input: Span<UInt8>) throws(ProtobufTranscoder.Fault) -> OTLPRecord {
    var record: OTLPRecord
    do throws(OTLPFault) { record = try facts(range, input) } catch { throw .malformed(offset: range.lowerBound) }
    record.members.reserveCapacity(range.count)
    transcoder.outputBytesMax = OTLPLimits.recordTextBytesMax
    try transcoder.append(signal.recordMessage, range, of: input, to: &record.members)
    return record
  }

  private mutating func object(
    _ message: OTLPMessage, _ range: Range<Int>, _ input: Span<UInt8>
  ) throws(OTLPFault) -> [UInt8] {
    var result: [UInt8] = [.openBrace]
    transcoder.outputBytesMax = OTLPLimits.originBytesMax - originBytes
    do throws(ProtobufTranscoder.Fault) {
      try transcoder.append(message, range, of: input, to: &result)
    } catch .tooLarge { throw .tooManyOriginBytes } catch {
      throw OTLPFault(400, "it is malformed, or too deep")
    }
    result.append(.closeBrace)
    originBytes += result.count
    return result
  }

  // MARK: What a record says of itself

  private func facts(_ range: Range<Int>, _ input: Span<UInt8>) throws(OTLPFault) -> OTLPRecord {
    var record = OTLPRecord()
    guard signal != .metrics else { return record }
    let isLog = signal == .logs
    var secondTime: UInt64 = 0
    var reader = ProtobufReader(range)
    while let field = try reader.nextField(input) {
      switch (field.number, field.value) {
      case (isLog ? 1 : 8, .fixed64(let time)): record.take(unixNanoseconds: time)
      case (isLog ? 11 : 7, .fixed64(let time)): secondTime = time
      case (2, .varint(let severity)) where isLog: record.isError = severity >= 17 && severity <= 24
      case (12, .bytes(let name)) where isLog && !name.isEmpty: record.eventName = input.text(name)
      default: break
      }
    }
    record.take(unixNanoseconds: secondTime)
    guard isLog, record.isError || record.eventName == nil else { return record }
    var (exception, eventName): (OTLPException, String?) = (OTLPException(), nil)
    try attributes(6, of: range, input) { key, value in
      if record.isError { exception.take(attribute: key, value) }
      if key == "event.name" { eventName = value }
    }
    record.exception = exception
    record.eventName = record.eventName ?? eventName
    return record
  }

  /// Calls `take` with the attributes of a message that mean something here and have a string.
  private func attributes(
    _ number: Int, of message: Range<Int>, _ input: Span<UInt8>, _ take: (String, String) -> Void
  ) throws(OTLPFault) {
    var reader = ProtobufReader(message)
    while let field = try reader.nextField(input) {
      guard field.number == number, case .bytes(let attribute) = field.value else { continue }
      let (key, value) = try pair(attribute, input)
      guard let key, let value, let name = Self.names.first(where: { input.extracting(key).equals($0) }) else {
        continue
      }
      if let text = try string(ofValue: value, input) { take(String(decoding: name, as: UTF8.self), text) }
    }
  }

  private static let names: [[UInt8]] = [
    "prism.namespace", "service.name", "service.version", "event.name", "exception.type", "exception.message",
    "exception.stacktrace",
  ].map { Array($0.utf8) }

  private func pair(
    _ range: Range<Int>, _ input: Span<UInt8>
  ) throws(OTLPFault) -> (key: Range<Int>?, value: Range<Int>?) {
    var (key, value): (Range<Int>?, Range<Int>?)
    var reader = ProtobufReader(range)
    while let field = try reader.nextField(input) {
      guard case .bytes(let part) = field.value else { continue }
      if field.number == 1 { key = part } else if field.number == 2 { value = part }
    }
    return (key, value)
  }

  private func string(ofValue range: Range<Int>, _ input: Span<UInt8>) throws(OTLPFault) -> String? {
    var reader = ProtobufReader(range)
    while let field = try reader.nextField(input) {
      if field.number == 1, case .bytes(let text) = field.value { return input.text(text) }
    }
    return nil
  }
}

extension ProtobufReader {
  fileprivate mutating func nextField(_ input: Span<UInt8>) throws(OTLPFault) -> Field? {
    do throws(Fault) { return try next(input) } catch { throw .malformed(error) }
  }
}

extension OTLPFault {
  fileprivate static func malformed(_ fault: ProtobufReader.Fault) -> OTLPFault {
    let place = if case .malformed(let offset) = fault { " (at byte \(offset))" } else { "" }
    return OTLPFault(400, "the body is not the protobuf of an OTLP request\(place)")
  }

  /// Why a part of a request is left out. - Throws: a limit of the whole request.
  fileprivate var ofPart: String {
    get throws(OTLPFault) { if status == 400 { message } else { throw self } }
  }

  static let tooManyGroups = OTLPFault(
    413, "the request has more than \(OTLPLimits.groupsMax) resources and scopes; send it in parts")
}

extension [UInt8] {
  /// Adds `schemaUrl` to a JSON object, or makes one of it.
  mutating func addMember(schemaURL: Span<UInt8>) {
    guard schemaURL.count > 0 else { return }
    if isEmpty { self = [.openBrace] } else { removeLast() }
    if count > 1 { append(.comma) }
    append(word: #""schemaUrl":"#)
    appendQuoted(schemaURL)
    append(.closeBrace)
  }
}

extension Span<UInt8> {
  func text(_ range: Range<Int>) -> String { String(decoding: [UInt8](copying: extracting(range)), as: UTF8.self) }

  func equals(_ other: [UInt8]) -> Bool {
    guard count == other.count else { return false }
    for index in indices where self[index] != other[index] { return false }
    return true
  }
}
