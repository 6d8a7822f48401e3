import Dispatch
public import PrismAdmission
import PrismBase
public import PrismConfig
public import PrismEngine
import PrismProtocol

/// Carries out the commands that work with this machine, on a queue of their own: files, programs and units block.
public final class MachineCommands: CommandTools {
  /// The most of a file, also if the namespace takes more.
  private static let fileBytesMax = 64 * 1024 * 1024
  private static let (findingsBytesMax, doctorSeconds) = (1_048_576, 180)
  /// A unit that takes longer goes on, and its command fails.
  private static let unitSeconds = 3600

  private let sink: any SubmissionSink
  private let configuration: @Sendable () -> (snapshot: Snapshot, path: String)
  private let queue = DispatchQueue(label: "prism.commands", attributes: .concurrent)
  private let source = SubmissionSource.daemon("commands")

  /// - Parameter configuration: in force, and the path of the daemon's file.
  public init(
    sink: any SubmissionSink, configuration: @escaping @Sendable () -> (snapshot: Snapshot, path: String)
  ) {
    (self.sink, self.configuration) = (sink, configuration)
  }

  // MARK: Doctor

  public func doctor(for command: CommandOrigin) async -> CommandEnd {
    let (snapshot, path) = configuration()
    guard let folder = SymbolicLink.ownExecutable.map({ FilePath.folder(of: $0) }) else {
      return .failed("the folder of prismctl is not known: there is no /proc")
    }
    let words = [
      "\(folder)/prismctl", "doctor", "--json", "--config", path, "--control", snapshot.daemon.control.socket,
    ]
    let ran = await onQueue {
      ProgramRun.run(words, outputBytesMax: Self.findingsBytesMax, seconds: Self.doctorSeconds)
    }
    guard let ran else { return .failed(.string("\(words[0]) can't be started")) }
    guard let exit = ran.exitCode, let findings = try? JSONValue(parsing: ran.output), findings["findings"] != nil
    else {
      return .failed(
        .string("prismctl doctor ended without findings, with \(ran.exitCode.map(String.init) ?? "a signal")"))
    }
    let counts = ["faults", "warnings"].map { JSONValue.Member($0, findings[$0] ?? .null) }
    let meta = JSONValue.object([.init("command", .string(command.id.text))] + counts)
    let refusal = await report("doctor", meta, findings.bytes, for: command)
    return refusal.map { .failed(.string($0)) } ?? .done(.object(counts + [.init("exit", .int(exit))]))
  }

  // MARK: Files

  public func collect(_ path: String, for command: CommandOrigin) async -> CommandEnd {
    let (snapshot, configPath) = configuration()
    guard let namespace = snapshot.namespaces[command.namespace] else {
      return .failed("the namespace is not configured any more")
    }
    let bytesMax = min(Self.fileBytesMax, namespace.maxBodyBytes)
    let secrets = Self.secrets(of: snapshot, configPath)
    let read: Result<[UInt8], GuardedFile.Fault> = await onQueue {
      Result { () throws(GuardedFile.Fault) in
        try GuardedFile(secret: secrets).read(path, bytesMax: bytesMax)
      }
    }
    switch read {
    case .failure(let fault): return .failed(.string("the file was not taken: \(fault.message)"))
    case .success(let content):
      let meta: JSONValue = [
        "command": .string(command.id.text), "path": .string(path), "size": .int(content.count),
      ]
      let refusal = await report("file", meta, content, for: command)
      return refusal.map { .failed(.string($0)) } ?? .done(["size": .int(content.count)])
    }
  }

  /// The state, and every file of the configuration that holds a secret, with the folders of key files.
  static func secrets(of snapshot: Snapshot, _ configPath: String) -> [String] {
    let daemon = snapshot.daemon
    var files = daemon.keys.map(\.file)
    files += [daemon.remote?.token, daemon.remote?.tls.keyFile, daemon.forward.sharedKeyFile].compactMap { $0?.path }
    for namespace in snapshot.namespaces.values {
      files += [namespace.token, namespace.tls.keyFile].compactMap { $0?.path }
    }
    let folders = daemon.keys.map { FilePath.folder(of: $0.file) }
    let credentials = ProcessEnvironment.all["CREDENTIALS_DIRECTORY"].map { [$0] } ?? []
    let keysFolder = FilePath.joined(FilePath.folder(of: configPath), "keys")
    return [daemon.state, keysFolder] + files + folders + credentials
  }

  // MARK: Units

  public func run(_ unit: String, for command: CommandOrigin) async -> CommandEnd {
    let socket = configuration().snapshot.daemon.commands.runSocket
    let ran: Result<UnitRun.Ran, UnitRun.Fault> = await onQueue {
      Result { () throws(UnitRun.Fault) in try UnitRun.run(unit, socket: socket, seconds: Self.unitSeconds) }
    }
    switch ran {
    case .failure(let fault): return .failed(.string(fault.message))
    case .success(let ran):
      let result: JSONValue = [
        "result": .string(ran.result), "exit": .int(ran.exit),
        "output": .string(String(decoding: ran.output, as: UTF8.self)),
      ]
      return ran.result == "success" ? .done(result) : .failed(result)
    }
  }

  // MARK: Reports

  /// - Returns: why it was not stored; nil: it was.
  private func report(_ type: String, _ meta: JSONValue, _ payload: [UInt8], for command: CommandOrigin) async
    -> String?
  {
    let report = Submission(
      type, in: command.namespace.text, meta: meta.bytes, payload: payload, reportID: ReportID(command.id.text),
      from: source)
    guard let refusal = await sink.submit(report) else { return nil }
    return "the report \(type) was refused, \(refusal.code.rawValue): \(refusal.message)"
  }

  private func onQueue<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in queue.async { continuation.resume(returning: body()) } }
  }
}
