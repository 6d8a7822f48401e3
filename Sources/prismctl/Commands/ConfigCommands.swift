import Glibc
import PrismBase
import PrismConfig
import PrismControl
import PrismProtocol

extension Command {
  static let configCheck = Command(
    words: ["config", "check"],
    summary: "print every fault of the files at PATH, else of /etc/prism, else of `prismd --dev`; starts nothing",
    operands: ["[PATH]"], options: [Option("--json", nil, "one JSON document")],
    sockets: [],
    example: "prismctl config check /etc/prism/prismd.yaml"
  ) { invocation throws(Failure) in
    let path = invocation.operands.first ?? CheckedFile(installed: "/etc/prism/prismd.yaml").said
    guard invocation.has("--json") else {
      let loaded = try load(path)
      let daemon = loaded.snapshot.daemon
      for (key, path) in [("ingest.socket", daemon.ingest.socket), ("control.socket", daemon.control.socket)] {
        let folder = FilePath.folder(of: path)
        guard case .file = loaded.origins[key], access(folder, F_OK) != 0, errno == ENOENT else { continue }
        Terminal.note("\(key): there is no folder \(folder), and prismd does not make it")
      }
      return
    }
    var faults: [ConfigurationFault] = []
    do throws(ConfigurationFaults) {
      _ = try Invocation.configurationLoader(path).load()
    } catch { faults = error.faults }
    let list = faults.map { fault -> JSONValue in
      [
        "file": .string(fault.file), "line": .int(fault.line), "key": .string(fault.key),
        "message": .string(fault.message),
      ]
    }
    print((["faults": .array(list)] as JSONValue).prettyText)
    if !faults.isEmpty { throw Failure(Failure.configuration, "") }
  }

  static let configShow = Command(
    words: ["config", "show"],
    summary: "show the configuration in force, or that of the files at PATH; without secrets",
    operands: ["[PATH]"],
    options: [
      Option("--origin", nil, "each value with where it comes from: default, file and line, remote"),
      Option("--json", nil, "one JSON document"),
    ],
    example: "prismctl config show --origin"
  ) { invocation throws(Failure) in
    let (hasOrigins, isJSON) = (invocation.has("--origin"), invocation.has("--json"))
    if let path = invocation.operands.first {
      let loaded = try load(path)
      return print(isJSON ? loaded.json(origins: hasOrigins).prettyText : loaded.text(origins: hasOrigins))
    }
    let request = ControlRequest(.configShow, [.init("origins", .bool(hasOrigins))])
    try ControlConnection(invocation).ask(request) { answer in
      print(isJSON ? answer[Answers.configuration]?.prettyText ?? "" : answer[Answers.text] ?? "")
    }
  }

  static let configDiff = Command(
    words: ["config", "diff"],
    summary: "show what the configuration at PATH would change, and its effect on stored rows; changes nothing",
    operands: ["PATH"], options: [json], example: "prismctl config diff /etc/prism.new/prismd.yaml"
  ) { invocation throws(Failure) in
    // The daemon reads it: with its rights, environment and credentials, as it would have to when it is put in place.
    let path = FilePath.absolute(invocation.operands[0])
    guard path.hasPrefix("/") else {
      throw .usage("PATH: give it from the root; the working folder is gone")
    }
    try ask(.configDiff, [.init("path", .string(path))], invocation)
  }

  /// - Throws: 78, when every fault was printed.
  private static func load(_ path: String) throws(Failure) -> LoadedConfiguration {
    do throws(ConfigurationFaults) {
      return try Invocation.configurationLoader(path).load()
    } catch {
      for fault in error.faults { print(fault) }
      throw Failure(Failure.configuration, "")
    }
  }
}

/// The file that `config check` reads without a path: the installed one where it can be read, else that of a trial.
struct CheckedFile {
  let path: String
  private let trial: String?

  init(installed: String, trial: String? = DevelopmentFolder.running?.configuration) {
    let isThere = access(installed, R_OK) == 0
    (path, self.trial) = (isThere ? installed : trial ?? installed, isThere ? trial : nil)
  }

  var note: String {
    "\(path) is checked" + (trial.map { "; for the prismd --dev that runs: prismctl config check \($0)" } ?? "")
  }

  fileprivate var said: String {
    Terminal.note(note)
    return path
  }
}
