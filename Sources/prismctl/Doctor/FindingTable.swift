import PrismProtocol

/// Doctor's findings for people: the result as a word, what was found, and below it what to do.
struct FindingTable {
  let text: String

  init(_ findings: [Finding], _ paint: Paint, columns: Int) {
    let lines = findings.flatMap { Self.lines($0, paint, max(40, columns)) }
    text = (lines + [Self.summary(findings, paint)]).joined(separator: "\n")
  }

  private static let indent = 8

  private static func lines(_ finding: Finding, _ paint: Paint, _ columns: Int) -> [String] {
    let found = "\(finding.check): \(finding.text)".printable.wrapped(columns - indent, indent: 0)
    let advice = finding.advice.map { "→ \($0)".printable.wrapped(columns - indent) } ?? []
    let word = paint(finding.result.rawValue.padded(indent), colour(finding.result))
    return found.enumerated().map { ($0 == 0 ? word : String(repeating: " ", count: indent)) + $1 }
      + advice.map { String(repeating: " ", count: indent) + $0 }
  }

  private static func colour(_ result: Finding.Result) -> Paint.Colour? {
    switch result {
    case .ok: .green
    case .warning: .yellow
    case .fault: .red
    case .skipped: .dim
    }
  }

  private static func summary(_ findings: [Finding], _ paint: Paint) -> String {
    func count(_ result: Finding.Result, _ word: String) -> String {
      word.counted(findings.count { $0.result == result })
    }
    let text = "\(count(.fault, "fault")), \(count(.warning, "warning"))"
    return paint(text, .bold)
  }
}
