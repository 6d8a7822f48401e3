import PrismBase
import PrismProtocol

/// One entry of a collector's `notices` as it was written.
package struct NoticeDraft: Sendable {
  var notice = CollectorConfiguration.Notice()
  var name: String?
  var url: String?

  private typealias Key = ConfigurationKey<NoticeDraft>

  static let keys = KeyTable(
    [
      Key(
        "name", .string("1 to 40 lower-case letters, digits and -", isSound: \.isOutputName), optional: \.name,
        isRequired: true, "the receiver's name in the list of notices"),
      Key(
        "url", .collectorURL, optional: \.url, isRequired: true, "where notices are posted; redirects are not followed"),
      Key(
        "form", .choice, at: \.notice.form,
        "`json`, `slack` (an incoming webhook) or `alertmanager` (`…/api/v2/alerts`)"),
      Key(
        "secretFile", .secretWordFile,
        optional: \.notice.secret, default: "no signature",
        "signs each notice: HMAC-SHA256 over its time and body, in `Prism-Signature`"),
      Key(
        "on", .list(of: .choice, "a list of newGroup, regressedGroup, silentDevice and count", atLeast: 1),
        at: \.notice.events, "the events that it gets notices of"),
      Key(
        "silentHour", .integer(1...168, unit: "hours"), at: \.notice.silentHours,
        "of `silentDevice`: a device that sent nothing for as long, and something in the 7 days before"),
      Key(
        "countType", .text(bytesMax: 256), at: \.notice.countType,
        "of `count`: the type of the reports that are counted"),
      Key(
        "countOver", .integer(1...1_000_000_000, unit: "reports"), at: \.notice.countOver,
        "of `count`: more reports than these within `countMinute`, by when they were received"),
      Key(
        "countMinute", .integer(1...1440, unit: "minutes"), at: \.notice.countMinutes,
        "of `count`: the time that is looked at"),
    ], defaults: NoticeDraft())
}

extension ValueForm where Value == [CollectorConfiguration.Notice] {
  static var notices: Self {
    let allowed = "a list of at most 16 receivers like {name: ops, url: https://ops.example/hook}"
    let entry = ValueForm<NoticeDraft>.object(NoticeDraft.keys, "a map like {name: ops, url: https://ops.example/hook}")
    return ValueForm(allowed: allowed, schema: ["type": "array", "items": entry.schema, "maxItems": 16]) {
      node, key, checker in
      guard case .sequence(let nodes) = node.value, nodes.count <= 16 else {
        checker.refuse(node, key, mustBe: allowed)
        return nil
      }
      var notices: [CollectorConfiguration.Notice] = []
      for (index, node) in nodes.enumerated() {
        let place = "\(key)[\(index)]"
        guard let draft = entry.read(node, place, &checker), let name = draft.name, let url = draft.url else {
          continue
        }
        if notices.contains(where: { $0.name == name }) {
          checker.fault(node.line, "\(place).name", "is \(name), which an earlier receiver has already")
        }
        var notice = draft.notice
        (notice.name, notice.url) = (name, url)
        notices.append(notice)
      }
      return notices
    } show: { notices in
      .array(notices.map { ["name": .string($0.name)] })
    }
  }
}
