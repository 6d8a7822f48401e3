import Glibc
import PrismBase
import PrismControl
import PrismProtocol

/// The names that a completion asks the daemon for; empty if it does not answer within 1 s.
struct DaemonNames {

  private static let reportsMax = 200

  /// The words before the cursor: they may name another control socket.
  let line: [String]

  /// The values of a placeholder of the help.
  func of(_ placeholder: String) -> [String] {
    switch placeholder {
    case "NAMESPACE", "N": namespaces
    case "TYPE", "T": types
    case "ID": dead.map { String($0.id) }
    case "REPORT_ID": Array(Set(dead.map(\.reportId) + storedReports)).sorted()
    default: []
    }
  }

  private var namespaces: [String] {
    var names: [String] = []
    ask(ControlRequest(.status)) { names = $0[Answers.status]?.namespaces.map(\.name) ?? [] }
    return names
  }

  /// Of every namespace's monitorList.
  private var types: [String] {
    var types: Set<String> = []
    ask(ControlRequest(.configShow)) { answer in
      guard let configuration = answer[Answers.configuration] else { return }
      for namespace in ConfigurationReport(controlJSON: configuration).namespaces {
        types.formUnion(namespace.value.monitorList.map(\.type))
      }
    }
    return types.sorted()
  }

  private var dead: [DeadLetterReport] {
    var letters: [DeadLetterReport] = []
    ask(ControlRequest(.deadList, [.init("after", .int(0))])) { letters = $0[Answers.dead] ?? [] }
    return letters
  }

  /// Of rows that wait, the oldest first.
  private var storedReports: [String] {
    var ids: [String] = []
    ask(ControlRequest(.export, [.init("kind", "meta")])) { answer throws(Failure) in
      if let id = answer[Answers.meta]?.reportID { ids.append(id) }
      if ids.count >= Self.reportsMax { throw Failure(Failure.no, "") }
    }
    return ids
  }

  private func ask(_ request: ControlRequest, _ onAnswer: (AnswerLine) throws(Failure) -> Void) {
    // A completion says nothing of what goes wrong: the command itself will.
    try? ControlConnection(path: path, timeoutSeconds: 1, isExact: true).ask(request, onAnswer)
  }

  private var path: String {
    for (index, word) in line.enumerated() {
      if word == "--control", index + 1 < line.count { return line[index + 1] }
      if word.hasPrefix("--control=") { return String(word.dropFirst("--control=".count)) }
    }
    return Invocation.usualControlSocket
  }
}
