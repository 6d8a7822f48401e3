import PrismAdmission
import PrismProtocol

extension OTLPRequest {
  /// Finds the records of a request in OTLP's JSON encoding. Members have their names in protobuf or in JSON.
  /// - Throws: 400 for what is not such a request, 413 for too many records.
  init(json body: [UInt8], _ signal: OTLPSignal) throws(OTLPFault) {
    self.init()
    let result: Result<Void, OTLPFault>
    do throws(JSONPieces.Malformed) { result = try readJSON(JSONPieces(input: body), signal) } catch {
      throw OTLPFault(400, "the body is not JSON at byte \(error.offset)")
    }
    try result.get()
  }

  private mutating func readJSON(
    _ pieces: JSONPieces, _ signal: OTLPSignal
  ) throws(JSONPieces.Malformed) -> Result<Void, OTLPFault> {
    let (names, whole) = (signal.names, try pieces.document())
    do throws(OTLPFault) {
      var originBytes = 0
      for resource in try level(pieces, whole, names.resources).parts {
        let found = try level(pieces, resource, names.scopes)
        let origin = Self.origin(pieces, found.members)
        if case .success(let known) = origin { originBytes += known.resource.count }
        for scope in found.parts {
          let found = try level(pieces, scope, names.records)
          var group = Group()
          if case .success(let known) = origin { group.origin = known }
          group.scope = Self.object("scope", .scope, pieces, found.members) ?? []
          group.records = found.parts
          if case .failure(let error) = origin {
            unusable["of a resource that is \(error)", default: 0] += group.records.count
            group.records = []
          }
          groups.append(group)
          originBytes += group.scope.count
          guard originBytes <= OTLPLimits.originBytesMax else { throw .tooManyOriginBytes }
          guard recordCount <= OTLPLimits.recordsMax else { throw .tooManyRecords }
          guard groups.count <= OTLPLimits.groupsMax else { throw .tooManyGroups }
        }
      }
      return .success(())
    } catch { return .failure(error) }
  }

  private typealias Members = [(key: String, value: Range<Int>)]

  /// The members of a level of the request, and the parts of its list.
  private mutating func level(
    _ pieces: JSONPieces, _ range: Range<Int>, _ name: String
  ) throws(OTLPFault) -> (members: Members, parts: [Range<Int>]) {
    guard pieces.isObject(range) else { throw .notObject }
    let members: Members
    do throws(JSONPieces.Malformed) { members = try pieces.members(range) } catch { throw .notJSON(error) }
    var parts: [Range<Int>] = []
    var isThere = false
    for member in members where OTLPField.isName(member.key, name) {
      isThere = true
      if pieces.isNull(member.value) { continue }
      guard pieces.isList(member.value) else { throw OTLPFault(400, "`\(name)` must be a list") }
      do throws(JSONPieces.Malformed) { parts += try pieces.elements(member.value) } catch { throw .notJSON(error) }
    }
    let others = members.filter { !["resource", "scope", "schemaUrl", "schema_url"].contains($0.key) }
    if !isThere, others.contains(where: { !pieces.isEmpty($0.value) }) {
      unusable["content beside `\(name)` is not known here", default: 0] += 1
    }
    return (members, parts)
  }

  private static func origin(_ pieces: JSONPieces, _ members: Members) -> Result<OTLPOrigin, JSONError> {
    var origin = OTLPOrigin()
    guard let range = members.last(where: { $0.key == "resource" })?.value, !pieces.isNull(range) else {
      return .success(origin)
    }
    do throws(JSONError) {
      let resource = try JSONValue(mending: Array(pieces.input[range]), as: .resource)
      origin.resource = resource.bytes(schemaURL: schemaURL(pieces, members))
      resource.forEachText { origin.take(attribute: $0, $1) }
      return .success(origin)
    } catch { return .failure(error) }
  }

  private static func object(
    _ name: String, _ message: OTLPMessage, _ pieces: JSONPieces, _ members: Members
  ) -> [UInt8]? {
    guard let range = members.last(where: { $0.key == name })?.value,
      let value = try? JSONValue(mending: Array(pieces.input[range]), as: message)
    else { return nil }
    return value.bytes(schemaURL: schemaURL(pieces, members))
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
    self = message?.normalized(value) ?? value
  }

  /// The attributes that hold a string.
  fileprivate func forEachText(_ take: (String, String) -> Void) {
    for attribute in self["attributes"]?.array ?? [] {
      guard let key = attribute["key"]?.string, let value = attribute["value"]?["stringValue"]?.string else { continue }
      take(key, value)
    }
  }

  fileprivate func bytes(schemaURL: String?) -> [UInt8] {
    guard object != nil else { return [] }
    var result = bytes
    if let schemaURL { result.addMember(schemaURL: Array(schemaURL.utf8).span) }
    return result
  }
}

extension OTLPFault {
  fileprivate static let notObject = OTLPFault(400, "the request, or a level of it, must be a JSON object")
  fileprivate static func notJSON(_ error: JSONPieces.Malformed) -> OTLPFault {
    OTLPFault(400, "the body is not JSON at byte \(error.offset)")
  }
}
