import PrismProtocol

extension OTLPRequest {
  /// Reads a request in OTLP's JSON encoding; its records stay as they were written, white space left out.
  /// - Throws: 400 for what is not such a request, 413 for too many records or values.
  init(json body: [UInt8], _ signal: OTLPSignal) throws(OTLPFault) {
    let tree: JSONValue
    do throws(JSONError) {
      tree = try JSONValue(parsing: body, valuesMax: OTLPLimits.valuesMax, allowsDuplicateKeys: true)
    } catch {
      throw OTLPFault(400, "the body is \(error)")
    }
    self.init()
    let names = signal.names
    for resource in try tree.list(names.resources) {
      let origin = OTLPOrigin(resource)
      for scope in try resource.list(names.scopes) {
        var group = Group(origin: origin)
        group.scope = scope["scope"]?.bytes(schemaURL: scope["schemaUrl"]) ?? []
        group.records = try scope.list(names.records).map { (record) throws(OTLPFault) in
          try OTLPRecord(record, signal)
        }
        groups.append(group)
        guard recordCount <= OTLPLimits.recordsMax else { throw .tooManyRecords }
        guard groups.count <= OTLPLimits.groupsMax else { throw .tooManyGroups }
      }
    }
  }
}

extension OTLPOrigin {
  fileprivate init(_ level: JSONValue) {
    guard let resource = level["resource"] else { return }
    self.resource = resource.bytes(schemaURL: level["schemaUrl"])
    resource.forEachText { take(attribute: $0, $1) }
  }
}

extension OTLPRecord {
  fileprivate init(_ record: JSONValue, _ signal: OTLPSignal) throws(OTLPFault) {
    guard record.object != nil else { throw .notObject("a record") }
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

  /// 64-bit numbers are strings in proto3's JSON; numbers are taken too.
  private mutating func take(time: JSONValue?) {
    switch time {
    case .string(let text), .number(let text): if let number = UInt64(text) { take(unixNanoseconds: number) }
    default: break
    }
  }
}

extension JSONValue {
  /// The objects in the list `name`; empty where it is left out.
  fileprivate func list(_ name: String) throws(OTLPFault) -> [JSONValue] {
    guard object != nil else { throw .notObject("the request, or a level of it,") }
    guard let value = self[name], !value.isNull else { return [] }
    guard let list = value.array else { throw OTLPFault(400, "`\(name)` must be a list") }
    return list
  }

  /// The attributes that hold a string.
  fileprivate func forEachText(_ take: (String, String) -> Void) {
    for attribute in self["attributes"]?.array ?? [] {
      guard let key = attribute["key"]?.string, let value = attribute["value"]?["stringValue"]?.string else { continue }
      take(key, value)
    }
  }

  fileprivate func bytes(schemaURL: JSONValue?) -> [UInt8] {
    guard object != nil else { return [] }
    var result = bytes
    if let url = schemaURL?.string { result.addMember(schemaURL: Array(url.utf8).span) }
    return result
  }
}

extension OTLPFault {
  fileprivate static func notObject(_ what: String) -> OTLPFault { OTLPFault(400, "\(what) must be a JSON object") }
}
