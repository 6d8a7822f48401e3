import PrismProtocol

/// One entry of `monitorList` as it was written.
package struct MonitoredTypeDraft: Sendable, Equatable {
  var type: ReportType?
  /// nil: the namespace's, which a later layer may still change.
  var onlyWifi: Bool?
  var isRealtime = false
  var isUploadPayload = false

  func settled(onlyWifi fallback: Bool) -> MonitoredType? {
    type.map {
      MonitoredType($0, onlyWifi: onlyWifi ?? fallback, isRealtime: isRealtime, isUploadPayload: isUploadPayload)
    }
  }
}

extension MonitoredTypeDraft {
  init(_ type: MonitoredType) {
    self.init(
      type: type.type, onlyWifi: type.onlyWifi, isRealtime: type.isRealtime, isUploadPayload: type.isUploadPayload)
  }

  private typealias Key = ConfigurationKey<MonitoredTypeDraft>

  static let keys = KeyTable(
    [
      Key("type", .reportType, optional: \.type, isRequired: true, "the type's name"),
      Key(
        "onlyWifi", .bool, optional: \.onlyWifi, default: "the namespace's", "stays on unmetered networks"),
      Key("isRealtime", .bool, at: \.isRealtime, "is uploaded at once, within a window of 2 seconds"),
      Key("isUploadPayload", .bool, at: \.isUploadPayload, "its payloads are uploaded too"),
    ], defaults: MonitoredTypeDraft())
}

extension ValueForm where Value == ReportType {
  static var reportType: Self {
    let allowed = "a type's name: 1 to 128 of A-Z a-z 0-9 _ . : -, the first a letter or digit"
    return ValueForm<String>.string(allowed) { ReportType($0) != nil }
      .converted({ ReportType($0) ?? .appCrash }, back: { $0.text })
  }
}

extension ValueForm where Value == [MonitoredTypeDraft] {
  static var monitorList: Self {
    let allowed = "a list of types, at least one"
    let list = Self.list(of: .object(MonitoredTypeDraft.keys, "a map like {type: order}"), allowed, atLeast: 1)
    return ValueForm(allowed: allowed, schema: list.schema) { node, key, checker in
      let types = list.read(node, key, &checker)
      guard let types, case .sequence(let nodes) = node.value else { return nil }
      var first: [ReportType: Int] = [:]
      for (index, (type, node)) in zip(types, nodes).enumerated() {
        guard let type = type.type, let earlier = first.updateValue(index, forKey: type) else { continue }
        checker.fault(node.line, "\(key)[\(index)].type", "is \(type), which \(key)[\(earlier)] has already")
      }
      return first.count == types.count ? types : nil
    } show: {
      list.show($0)
    }
  }
}
