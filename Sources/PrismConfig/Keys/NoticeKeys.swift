extension CollectorConfiguration.Notice {
  private typealias Key = ConfigurationKey<CollectorConfiguration.Notice>

  /// One entry of a collector's `notices`.
  static let keys = KeyTable(
    [
      Key(
        "name", .string("1 to 40 lower-case letters, digits and -", isSound: \.isOutputName), required: \.name,
        "the receiver's name in the list of notices"),
      Key("url", .collectorURL, required: \.url, "where notices are posted; redirects are not followed"),
      Key(
        "form", .choice, at: \.form,
        "`json`, `slack` (an incoming webhook) or `alertmanager` (`…/api/v2/alerts`)"),
      Key(
        "secretFile", .secretWordFile,
        optional: \.secret, default: "no signature",
        "signs each notice: HMAC-SHA256 over its time and body, in `Prism-Signature`"),
      Key(
        "on", .list(of: .choice, "a list of newGroup, regressedGroup, silentDevice and count", atLeast: 1),
        at: \.events, "the events that it gets notices of"),
      Key(
        "silentHour", .integer(1...168, unit: "hours"), at: \.silentHours,
        "of `silentDevice`: a device that sent nothing for as long, and something in the 7 days before"),
      Key(
        "countType", .text(bytesMax: 256), at: \.countType,
        "of `count`: the type of the reports that are counted"),
      Key(
        "countOver", .integer(1...1_000_000_000, unit: "reports"), at: \.countOver,
        "of `count`: more reports than these within `countMinute`, by when they were received"),
      Key(
        "countMinute", .integer(1...1440, unit: "minutes"), at: \.countMinutes,
        "of `count`: the time that is looked at"),
    ], defaults: CollectorConfiguration.Notice())
}

extension ValueForm where Value == [CollectorConfiguration.Notice] {
  static var notices: Self {
    let example = "{name: ops, url: https://ops.example/hook}"
    return .list(
      of: .object(CollectorConfiguration.Notice.keys, "a map like \(example)"),
      "a list of at most 16 receivers like \(example)", atMost: (16, "receivers"),
      named: ({ $0.name }, "an earlier receiver has already"))
  }
}
