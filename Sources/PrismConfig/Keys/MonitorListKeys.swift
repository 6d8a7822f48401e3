import PrismProtocol

/// One entry of `monitorList` as it was written.
package struct MonitoredTypeDraft: Sendable, Equatable {
  var type: ReportType?
  /// nil: the namespace's, which a later layer may still change.
  var onlyWifi: Bool?
  var isRealtime = false
  var isUploadPayload = false
  var keep = MonitoredType.Keep.queue
  var filters = TypeFilters()

  func settled(onlyWifi fallback: Bool) -> MonitoredType? {
    type.map {
      MonitoredType(
        $0, onlyWifi: onlyWifi ?? fallback, isRealtime: isRealtime, isUploadPayload: isUploadPayload, keep: keep,
        filters: filters)
    }
  }
}

extension MonitoredTypeDraft {
  init(_ type: MonitoredType) {
    self.init(
      type: type.type, onlyWifi: type.onlyWifi, isRealtime: type.isRealtime, isUploadPayload: type.isUploadPayload,
      keep: type.keep, filters: type.filters)
  }

  private typealias Key = ConfigurationKey<MonitoredTypeDraft>

  static let keys = KeyTable(
    [
      Key("type", .monitoredType, optional: \.type, isRequired: true, "the type's name, or a pattern of names"),
      Key(
        "onlyWifi", .bool, optional: \.onlyWifi, default: "the namespace's", "stays on unmetered networks"),
      Key("isRealtime", .bool, at: \.isRealtime, "is uploaded at once, within a window of 2 seconds"),
      Key(
        "isUploadPayload", .bool, at: \.isUploadPayload,
        "its payloads are stored and uploaded; without it a report is stored without its payload, and its answer says so"
      ),
      Key(
        "keep", .choice, at: \.keep,
        "where its reports wait: in the `queue` that is uploaded, or in the namespace's `ring`, where they stay until newer ones need their place"
      ),
      Key(
        "redact", .redactions, at: \.filters.redact, default: "none",
        "fields of its metas that are removed, masked or hashed before the report is stored"),
      Key(
        "sample", .share, optional: \.filters.sample, default: "all", "the share of its reports that is kept"),
      Key(
        "sampleBy", .fieldPath, optional: \.filters.sampleBy, default: "the report id",
        "the field that decides whether a report is kept: equal values are kept or left out together"),
      Key(
        "perMinute", .integer(1...1_000_000, unit: "reports"), optional: \.filters.perMinute,
        "the most reports of one user in a minute; more are refused with `rate_limited`"),
      Key(
        "collapse", .collapse, optional: \.filters.collapse,
        "reports of one user that are equal in `by` become one row, with their count, within `second`"),
    ], defaults: MonitoredTypeDraft())
}

extension ValueForm where Value == ReportType {
  static var monitoredType: Self {
    let allowed =
      "a type's name: 1 to 128 of A-Z a-z 0-9 _ . : -, the first a letter or digit; or a pattern with * and ?"
    return ValueForm<String>.string(allowed) { ReportType(entry: $0) != nil }
      .converted({ ReportType(entry: $0) ?? .appCrash }, back: { $0.text })
  }

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
      let faultsBefore = checker.faults.count
      for (index, (type, node)) in zip(types, nodes).enumerated() where type.keep == .ring {
        let reason: String? =
          if type.type == .appCrash { "a crash leaves at once" } else if type.isRealtime {
            "isRealtime: true wants its reports to leave at once"
          } else { nil }
        if let reason { checker.fault(node.line, "\(key)[\(index)].keep", "is ring, must be queue: \(reason)") }
      }
      return first.count == types.count && checker.faults.count == faultsBefore ? types : nil
    } show: {
      list.show($0)
    }
  }
}
