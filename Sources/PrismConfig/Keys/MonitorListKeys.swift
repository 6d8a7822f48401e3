import PrismProtocol

/// One entry of `monitorList` as it was written.
package struct MonitoredTypeDraft: Sendable, Equatable {
  var entry: MonitoredType
  /// nil: the namespace's, which a later layer may still change.
  var onlyWifi: Bool?

  func settled(onlyWifi fallback: Bool) -> MonitoredType {
    var settled = entry
    settled.onlyWifi = onlyWifi ?? fallback
    return settled
  }

  private typealias Key = ConfigurationKey<MonitoredTypeDraft>

  static let keys = KeyTable(
    [
      Key("type", .monitoredType, required: \.entry.type, "the type's name, or a pattern of names"),
      Key(
        "onlyWifi", .bool, optional: \.onlyWifi, default: "the namespace's", "stays on unmetered networks"),
      Key("isRealtime", .bool, at: \.entry.isRealtime, "is uploaded at once, within a window of 2 seconds"),
      Key(
        "isUploadPayload", .bool, at: \.entry.isUploadPayload,
        "its payloads are stored and uploaded; without it a report is stored without its payload, and its answer says so"
      ),
      Key(
        "keep", .choice, at: \.entry.keep,
        "where its reports wait: in the `queue` that is uploaded, in the namespace's `ring`, where they stay until newer ones need their place, or in a ring in `memory`, which a restart of the machine empties"
      ),
      Key(
        "redact", .redactions, at: \.entry.filters.redact, default: "none",
        "fields of its metas that are removed, masked or hashed before the report is stored"),
      Key(
        "sample", .share, optional: \.entry.filters.sample, default: "all", "the share of its reports that is kept"),
      Key(
        "sampleBy", .fieldPath, optional: \.entry.filters.sampleBy, default: "the report id",
        "the field that decides whether a report is kept: equal values are kept or left out together"),
      Key(
        "perMinute", .integer(1...1_000_000, unit: "reports"), optional: \.entry.filters.perMinute,
        "the most reports of one user in a minute; more are refused with `rate_limited`"),
      Key(
        "collapse", .collapse, optional: \.entry.filters.collapse,
        "reports of one user that are equal in `by` become one row, with their count, within `second`"),
      Key(
        "reduce", .reduction, optional: \.entry.filters.reduce, default: "none",
        "its reports become one row a window and group, with count, sums and percentiles; in the ring they stay, too"),
    ], defaults: MonitoredTypeDraft(entry: MonitoredType(.appCrash)))
}

extension ValueForm where Value == ReportType {
  private static var rule: String { "a type's name: 1 to 128 of A-Z a-z 0-9 _ . : -, the first a letter or digit" }

  static var monitoredType: Self {
    .text("\(rule); or a pattern with * and ?", meaning: { ReportType(entry: $0) }, show: { .string($0.text) })
  }

  static var reportType: Self { .text(rule, meaning: { ReportType($0) }, show: { .string($0.text) }) }
}

extension ValueForm where Value == [MonitoredTypeDraft] {
  static var monitorList: Self {
    .list(
      of: .object(MonitoredTypeDraft.keys, "a map like {type: order}"), "a list of types, at least one", atLeast: 1
    ).checked { drafts, index in
      let types = drafts.map(\.entry)
      let type = types[index]
      var faults: [(member: String, message: String)] = []
      if let earlier = types[..<index].firstIndex(where: { $0.type == type.type }) {
        faults.append(("type", "is \(type.type), which monitorList[\(earlier)] has already"))
      }
      let reason: String? =
        if type.type == .appCrash { "a crash leaves at once" } else if type.isRealtime {
          "isRealtime: true wants its reports to leave at once"
        } else { nil }
      if type.filters.reduce != nil, let reason { faults.append(("reduce", "must be missing: \(reason)")) }
      if type.filters.reduce != nil, type.filters.collapse != nil {
        faults.append(("reduce", "is there beside collapse, must be one of both"))
      }
      if type.filters.reduce.map({ $0.fields.count > ReportReduction.membersMax }) == true {
        faults.append(("reduce.fields", "has over \(ReportReduction.membersMax) members"))
      }
      if type.keep != .queue, let reason { faults.append(("keep", "is \(type.keep), must be queue: \(reason)")) }
      return faults
    }
  }
}
