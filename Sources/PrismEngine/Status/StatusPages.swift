import PrismBase
import PrismConfig
import PrismControl
import PrismProtocol

/// The pages for people at `metrics.listen`: `prismctl status` and the daemon's part of `prismctl doctor` as HTML
/// (docs/metrics.md). They are whole without a script; the script renews the figures.
public struct StatusPages: Sendable {
  private let handler: ControlHandler
  private let host: String

  /// - Parameter host: the name of this machine, for the title.
  public init(_ handler: ControlHandler, host: String) { (self.handler, self.host) = (handler, host) }

  // MARK: Status

  public func status() async -> String {
    let report = await handler.status()
    let obstacles = await obstacles(report)
    return Self.page(report, obstacles, host: host)
  }

  private func obstacles(_ report: StatusReport) async -> [StatusVerdict.Obstacle] {
    let (pipelines, snapshot) = (await handler.engine.pipelines, handler.engine.hub.current)
    var obstacles: [StatusVerdict.Obstacle] = []
    for namespace in report.namespaces where namespace.value.unsentRows > 0 {
      guard let name = NamespaceName(namespace.name), let pipeline = pipelines[name],
        let type = snapshot.namespaces[name]?.monitorList.first?.type
      else { continue }
      let kind: RowKind = namespace.value.meta.waiting > 0 ? .meta : .payload
      guard let gate = await pipeline.explain(kind, type) else { continue }
      obstacles.append(
        .init(
          namespace: namespace.name, reason: gate.words,
          isTimer: gate.gate == .timer || gate.gate == .meteredInterval))
    }
    return obstacles
  }

  static func page(_ report: StatusReport, _ obstacles: [StatusVerdict.Obstacle], host: String = "") -> String {
    let verdict = StatusVerdict(report, obstacles)
    var html = HTMLText()
    html.add("<p class=\"light \(verdict.light.rawValue)\" role=\"status\">", verdict.sentence, "</p>")
    addFlow(report, to: &html)
    let notes = StatusVerdict.notes(report)
    if !notes.isEmpty {
      html.raw("<h2>To look at</h2><ul class=\"notes\">")
      for note in notes { html.add("<li>", note, "</li>") }
      html.raw("</ul>")
    }
    addNamespaces(report, obstacles, to: &html)
    html.add(
      "<p class=\"quiet\">",
      "prismd \(report.version), up \(Duration.seconds(report.uptimeSeconds).words), configuration \(report.generation), database "
        + "\(Self.bytes(report.storeBytes)), network \(report.network.kind)", "</p>")
    html.raw("<p><a href=\"/doctor\">Run the checks of the daemon</a>, <a href=\"/metrics\">metrics</a></p>")
    return document("Status", of: host, html.text)
  }

  private static func bytes(_ count: Int) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")]
    return units.first { count >= 10 * $0.0 }.map { "\(count / $0.0) \($0.1)" } ?? "\(count) bytes"
  }

  private static func addFlow(_ report: StatusReport, to html: inout HTMLText) {
    func sum(_ figure: (QueueReport) -> Int) -> Int {
      report.namespaces.reduce(0) { $0 + figure($1.value.meta) + figure($1.value.payload) }
    }
    let steps = [
      ("Stored", sum { $0.ledger.stored }), ("Waiting", sum { $0.waiting }), ("Claimed", sum { $0.claimed }),
      ("Delivered", sum { $0.ledger[.delivered] }), ("Dead letters", sum { $0.dead }),
    ]
    html.raw("<ol class=\"flow\" aria-label=\"From ingest to the collector\">")
    for step in steps { html.add("<li><b>\(step.1)</b> ", step.0, "</li>") }
    html.raw("</ol>")
  }

  private static let columns = ["Namespace", "Stored", "Waiting", "Claimed", "Delivered", "Dead", "Oldest", "State"]

  private static func addNamespaces(
    _ report: StatusReport, _ obstacles: [StatusVerdict.Obstacle], to html: inout HTMLText
  ) {
    html.raw(
      "<h2>Namespaces</h2><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Namespaces\"><table><thead><tr>"
    )
    for column in columns { html.add("<th scope=\"col\">", column, "</th>") }
    html.raw("</tr></thead><tbody>")
    for namespace in report.namespaces {
      let value = namespace.value
      html.add("<tr><th scope=\"row\">", namespace.name, "</th>")
      let figures = [
        value.storedRows, value.meta.waiting + value.payload.waiting, value.meta.claimed + value.payload.claimed,
        value.deliveredRows, value.deadRows,
      ]
      for figure in figures { html.raw("<td class=\"number\">\(figure)</td>") }
      html.raw("<td class=\"number\">\(Duration.seconds(value.oldestAgeSeconds).words)</td>")
      html.add("<td>", state(namespace, obstacles), "</td></tr>")
    }
    html.raw("</tbody></table></div>")
  }

  private static func state(
    _ namespace: NamedValues<NamespaceReport>.Element, _ obstacles: [StatusVerdict.Obstacle]
  ) -> String {
    var words = [namespace.value.state]
    if namespace.value.circuitIsOpen { words.append("circuit open") }
    if let failure = namespace.value.presentFailure { words.append(failure.cause) }
    if let wait = namespace.value.nextTryInSeconds { words.append("next try in \(Duration.seconds(wait).words)") }
    words += obstacles.filter { $0.namespace == namespace.name }.map(\.reason)
    return words.joined(separator: "; ")
  }

  // MARK: Doctor

  /// Looks at the database and asks the collectors, for up to 10 s.
  public func doctor() async -> String {
    Self.page(await Doctor(engine: handler.engine, process: handler.process()).findings(), host: host)
  }

  static func page(_ findings: [Finding], host: String = "") -> String {
    var html = HTMLText()
    let faults = findings.count { $0.result == .fault }
    let sentence =
      faults == 0
      ? "No check found a fault." : faults == 1 ? "1 check found a fault." : "\(faults) checks found faults."
    html.add(
      "<p class=\"light \(faults == 0 ? "sending" : "held")\" role=\"status\">", sentence, "</p><ul class=\"checks\">")
    for finding in findings {
      html.add("<li class=\"\(finding.result.rawValue)\"><b>", "\(finding.check): \(finding.result.rawValue)", "</b> ")
      html.add("", finding.text, "")
      if let advice = finding.advice { html.add("<p>", advice, "</p>") }
      html.raw("</li>")
    }
    html.raw("</ul><p><a href=\"/\">Status</a></p>")
    return document("Checks", of: host, html.text)
  }

  /// The page of an answer that the store does not give.
  public static func silentStore() -> String {
    document(
      "Status", of: "",
      "<p class=\"light held\" role=\"status\">Held: the store does not answer. See the log, and the disk of state.</p>"
    )
  }

  private static func document(_ title: String, of host: String, _ body: String) -> String {
    let heading = HTMLText.escaped(host.isEmpty ? title : "\(title) of \(host)")
    return """
      <!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
      <title>\(heading) · prismd</title><link rel="stylesheet" href="/status.css"><link rel="icon" href="data:,">
      \(title == "Status" ? "<script src=\"/status.js\" defer></script>" : "")</head>
      <body><main><h1>\(heading)</h1>\(body)</main></body></html>

      """
  }
}

/// Markup whose texts can hold anything: a namespace's name, a cause that a collector sent, a key of a file.
struct HTMLText {
  private(set) var text = ""

  /// - Parameter markup: of this program, with figures at most.
  mutating func raw(_ markup: String) { text += markup }

  mutating func add(_ before: String, _ text: String, _ after: String) {
    self.text += before + Self.escaped(text) + after
  }

  static func escaped(_ text: String) -> String {
    var result = ""
    for scalar in text.printable.unicodeScalars {
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\"": result += "&quot;"
      case "'": result += "&#39;"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}
