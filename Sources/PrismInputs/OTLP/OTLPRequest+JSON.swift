import PrismAdmission
import PrismBase
import PrismProtocol

extension OTLPRequest {
  /// Finds the records of a request in OTLP's JSON encoding. Members have their names in protobuf or in JSON.
  /// - Throws: 400 for what is not such a request, 413 for too many records.
  init(json body: [UInt8], _ signal: OTLPSignal) throws(OTLPFault) {
    self.init()
    let (pieces, names) = (JSONPieces(input: body), signal.names)
    var originBytes = 0
    guard let request = try level(pieces, try pieces.document(), names.resources) else { throw .noRequest }
    for resource in request.parts {
      guard let found = try level(pieces, resource, names.scopes) else { continue }
      let origin = Self.origin(pieces, found.members)
      if case .success(let known) = origin { originBytes += known.resource.count }
      for scope in found.parts {
        guard let found = try level(pieces, scope, names.records) else { continue }
        var group = Group(records: found.parts)
        do throws(JSONError) { group.origin = try origin.get() } catch {
          leaveOut(&group, "of a resource that can't be read: \(error.reason)")
        }
        do throws(JSONError) {
          group.scope = try Self.object("scope", .scope, pieces, found.members)?.bytes ?? []
        } catch {
          leaveOut(&group, "of a scope that can't be read: \(error.reason)")
        }
        groups.append(group)
        originBytes += group.scope.count
        guard originBytes <= OTLPLimits.originBytesMax else { throw .tooManyOriginBytes }
        guard recordCount <= OTLPLimits.recordsMax else { throw .tooManyRecords }
        guard groups.count <= OTLPLimits.groupsMax else { throw .tooManyGroups }
      }
    }
  }

  private typealias Members = [(key: String, value: Range<Int>)]

  /// The members of a level of the request, and the parts of its list. A level of another form is left out: it is nil.
  private mutating func level(
    _ pieces: JSONPieces, _ range: Range<Int>, _ name: String
  ) throws(OTLPFault) -> (members: Members, parts: [Range<Int>])? {
    let members = pieces.isObject(range) ? try pieces.members(range) : []
    let lists = members.filter { OTLPField.isName($0.key, name) && !pieces.isNull($0.value) }
    guard pieces.isObject(range), lists.allSatisfy({ pieces.isList($0.value) }) else {
      unusable["a level of the request is no JSON object, or its `\(name)` no list", default: 0] += 1
      return nil
    }
    var parts: [Range<Int>] = []
    for list in lists { parts += try pieces.elements(list.value) }
    let isThere = members.contains { OTLPField.isName($0.key, name) }
    let others = members.filter { !["resource", "scope", "schemaUrl", "schema_url"].contains($0.key) }
    if !isThere, others.contains(where: { !pieces.isEmpty($0.value) }) {
      unusable["content beside `\(name)` is not known here", default: 0] += 1
    }
    return (members, parts)
  }

  private static func origin(_ pieces: JSONPieces, _ members: Members) -> Result<OTLPOrigin, JSONError> {
    do throws(JSONError) {
      var origin = OTLPOrigin()
      guard let resource = try object("resource", .resource, pieces, members) else { return .success(origin) }
      origin.resource = resource.bytes
      resource.value.forEachText { origin.take(attribute: $0, $1) }
      return .success(origin)
    } catch { return .failure(error) }
  }

  /// A member that is an object, and its text with the schema's URL; nil: it is not there.
  private static func object(
    _ name: String, _ message: OTLPMessage, _ pieces: JSONPieces, _ members: Members
  ) throws(JSONError) -> (value: JSONValue, bytes: [UInt8])? {
    guard let range = members.last(where: { $0.key == name })?.value, !pieces.isNull(range) else { return nil }
    let value = try JSONValue(mending: Array(pieces.input[range]), as: message)
    guard value.object != nil else { throw JSONError("an object is expected", at: 0) }
    var bytes = value.bytes
    if let url = schemaURL(pieces, members) { bytes.addMember(schemaURL: Array(url.utf8).span) }
    return (value, bytes)
  }

  private static func schemaURL(_ pieces: JSONPieces, _ members: Members) -> String? {
    let range = members.last { OTLPField.isName($0.key, "schemaUrl") }?.value
    return range.flatMap { try? JSONValue(mending: Array(pieces.input[$0]), as: nil) }?.string
  }
}

extension OTLPRecord {
  /// - Parameter text: a JSON value. - Throws: why it can't become a report.
  init(json text: [UInt8], _ signal: OTLPSignal) throws(JSONError) {
    let record = try JSONValue(mending: text, as: signal.recordMessage)
    guard record.object != nil else { throw JSONError("a record must be an object", at: 0) }
    members = Array(record.bytes.dropFirst().dropLast())
    switch signal {
    case .logs:
      for key in ["timeUnixNano", "observedTimeUnixNano"] { take(time: record[key]) }
      if let severity = record["severityNumber"]?.int { isError = 17...24 ~= severity }
      if let name = record["eventName"]?.string, !name.isEmpty { eventName = name }
      record.forEachText { key, value in
        if isError { exception.take(attribute: key, value) }
        if key == "event.name", eventName == nil { eventName = value }
      }
    case .traces: for key in ["endTimeUnixNano", "startTimeUnixNano"] { take(time: record[key]) }
    case .metrics: break
    }
  }

  private mutating func take(time: JSONValue?) {
    if let number = time?.string.flatMap({ UInt64($0) }) { take(unixNanoseconds: number) }
  }
}

extension JSONValue {
  /// Reads a value of a message of OTLP. Bytes that are not UTF-8 and halves of surrogate pairs become U+FFFD, as in protobuf.
  /// - Parameter message: nil: any value.
  init(mending text: [UInt8], as message: OTLPMessage?) throws(JSONError) {
    func parse(_ text: [UInt8]) throws(JSONError) -> JSONValue {
      try JSONValue(
        parsing: text, depthMax: ProtobufTranscoder.depthMax, valuesMax: ProtobufTranscoder.fieldsMax,
        allowsDuplicateKeys: true)
    }
    let value: JSONValue
    do throws(JSONError) { value = try parse(text) } catch {
      let mended = MendedMeta.sound(text)
      if mended == text { throw error }
      value = try parse(mended)
    }
    self = try message?.normalized(value) ?? value
  }

  /// The attributes that hold a string.
  fileprivate func forEachText(_ take: (String, String) -> Void) {
    for attribute in self["attributes"]?.array ?? [] {
      guard let key = attribute["key"]?.string, let value = attribute["value"]?["stringValue"]?.string else { continue }
      take(key, value)
    }
  }
}

// Forms that protobuf's JSON mapping allows beside the one that protobuf's own library writes.
extension OTLPMessage {
  /// The value with the members' names in lowerCamelCase, without null, ids in lower-case hexadecimal digits, enumerations as
  /// numbers, and 64-bit numbers as strings. Members that are not known stay as they are.
  /// - Throws: a member has not the form of its field: no reader of OTLP would take it.
  func normalized(_ value: JSONValue) throws(JSONError) -> JSONValue {
    guard let members = value.object else { return value }
    var result: [JSONValue.Member] = []
    for member in members where !member.value.isNull {
      guard let (name, field) = Self.byName[rawValue][member.key] else {
        result.append(member)
        continue
      }
      guard field.isRepeated else {
        result.append(.init(name, try field.normalized(member.value)))
        continue
      }
      guard let elements = member.value.array else { throw JSONError("`\(name)` must be a list", at: 0) }
      var normalized: [JSONValue] = []
      for element in elements where !element.isNull { normalized.append(try field.normalized(element)) }
      result.append(.init(name, .array(normalized)))
    }
    return .object(result)
  }

  /// Fields by both of their names.
  private static let byName: [[String: (name: String, field: OTLPField)]] = allCases.map { message in
    var result: [String: (name: String, field: OTLPField)] = [:]
    for field in message.fields.compactMap({ $0 }) {
      let name = field.name.description
      result[name] = (name, field)
      result[name.snakeCased] = (name, field)
    }
    return result
  }
}

extension OTLPField.Form {
  /// For errors.
  fileprivate var words: String {
    switch self {
    case .string, .base64: "a string"
    case .hexadecimal: "hexadecimal digits"
    case .bool: "true or false"
    case .double: "a number"
    case .message: "an object"
    default: "a whole number"
    }
  }
}

extension OTLPField {
  /// Whether a key is the field's name in JSON or in protobuf.
  static func isName(_ key: String, _ name: String) -> Bool { key == name || key == name.snakeCased }

  fileprivate func normalized(_ value: JSONValue) throws(JSONError) -> JSONValue {
    let normalized: JSONValue? =
      switch (form, value) {
      case (.message(let message), .object): try message.normalized(value)
      case (.string, .string), (.base64, .string), (.bool, .bool), (.double, .number): value
      case (.hexadecimal, .string(let text)): Self.hexadecimal(text).map { .string($0) }
      case (.double, .string(let text)): Double(text) == nil ? nil : value
      // The name of a later version of an enumeration stays.
      case (.varint32, .string(let text)):
        (Int32(text).map { String($0) } ?? Self.enumeration(text)).map { .number($0) } ?? value
      case (.signed64, .number(let text)), (.unsigned64, .number(let text)), (.fixed64, .number(let text)),
        (.signedFixed64, .number(let text)), (.signed64, .string(let text)), (.unsigned64, .string(let text)),
        (.fixed64, .string(let text)), (.signedFixed64, .string(let text)):
        Self.whole(text).map { .string($0) }
      case (.varint32, .number(let text)), (.unsigned32, .number(let text)), (.zigzag32, .number(let text)),
        (.fixed32, .number(let text)), (.unsigned32, .string(let text)), (.zigzag32, .string(let text)),
        (.fixed32, .string(let text)):
        Self.whole(text).map { .number($0) }
      default: nil
      }
    guard let normalized else { throw JSONError("`\(name)` must be \(form.words)", at: 0) }
    return normalized
  }

  /// An id of a trace or a span: OTLP writes hexadecimal digits, protobuf's own mapping base64. nil: it is neither.
  private static func hexadecimal(_ text: String) -> String? {
    if Hex.decode(Array(text.utf8)[...]) != nil, ![12, 24].contains(text.utf8.count) { return text.lowercased() }
    guard [12, 24].contains(text.utf8.count) else { return nil }
    return Base64.decode(Array(text.utf8)).map { Hex.encode($0) }
  }

  /// `1.5e18` is a whole number, too.
  private static func whole(_ text: String) -> String? {
    if UInt64(text) != nil || Int64(text) != nil { return text }
    guard let number = Double(text) else { return nil }
    return UInt64(exactly: number).map { String($0) } ?? Int64(exactly: number).map { String($0) }
  }

  /// The number of an enumeration's name; nil for another text.
  private static func enumeration(_ text: String) -> String? {
    let lists = [
      "SPAN_KIND_": ["UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"],
      "STATUS_CODE_": ["UNSET", "OK", "ERROR"], "AGGREGATION_TEMPORALITY_": ["UNSPECIFIED", "DELTA", "CUMULATIVE"],
      "SEVERITY_NUMBER_": ["UNSPECIFIED"]
        + ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"].flatMap { [$0, "\($0)2", "\($0)3", "\($0)4"] },
    ]
    for (prefix, names) in lists where text.hasPrefix(prefix) {
      return names.firstIndex(of: String(text.dropFirst(prefix.count))).map { String($0) }
    }
    return nil
  }
}
