import CSymbols
import Glibc
import PrismBase

/// Names places in programs by their debug files, through `eu-addr2line` of elfutils and `addr2line` of binutils. The files are
/// hostile input: a confined child reads them, one for many places of a file. A file that ends a child, or takes too long, is read by
/// that program no more until it is replaced.
actor Symbolizer {
  static let program = "/usr/bin/eu-addr2line"
  /// Both print one form. The second one finds inlined functions of Rust and Swift, and lines, that elfutils does not find.
  static var programs: [String] { [program, "/usr/bin/addr2line"].filter { access($0, X_OK) == 0 } }
  /// Of both generations of the answers that are kept.
  private static let answersMax = 32_768
  private static let placesMax = 1000
  /// Beside the file itself, which is mapped.
  private static let memoryBytesMax = 192 * 1_048_576

  nonisolated let folder: SymbolFolder
  private let log: Logger
  private let cpuSeconds: UInt32
  private let executor = DispatchQueueExecutor(label: "prism.collector.symbols")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private var found: [String: SymbolFolder.File] = [:]
  /// By build id: why a file names nothing more.
  var faults: [String: String] {
    failed.filter { $0.value.count == Self.programs.count }.compactMapValues { $0[Self.program] ?? $0.values.first }
  }
  /// By build id and program: why the program reads the file no more.
  private var failed: [String: [String: String]] = [:]
  /// Answers that were needed lately, and those before them.
  private var answers: [CodePlace: [SymbolName]] = [:], older: [CodePlace: [SymbolName]] = [:]
  private(set) var children = 0

  /// - Parameter cpuSeconds: of a child; in the time of a clock it may take three times as long.
  init(_ folder: SymbolFolder, log: Logger, cpuSeconds: UInt32 = 10) {
    (self.folder, self.log, self.cpuSeconds) = (folder, log, cpuSeconds)
  }

  static var isInstalled: Bool { programs.contains(program) }

  /// The debug files as they are now. Answers of files that changed since are forgotten.
  func files() -> [String: SymbolFolder.File] {
    let files = folder.files()
    guard files != found else { return files }
    let changed = Set(found.keys).union(files.keys).filter { found[$0] != files[$0] }
    for id in changed { failed[id] = nil }
    answers = answers.filter { !changed.contains($0.key.buildID) }
    older = older.filter { !changed.contains($0.key.buildID) }
    found = files
    return files
  }

  /// Takes a part of an upload, as the folder does, on this actor's queue.
  func take(
    _ part: [UInt8], of name: String, at offset: Int, size: Int
  ) throws(SymbolFolder.Fault) -> SymbolFolder.Outcome? {
    try folder.take(part, of: name, at: offset, size: size)
  }

  /// - Returns: by place, the innermost function first. Places without an answer stay as they are.
  func names(of places: Set<CodePlace>) -> [CodePlace: [SymbolName]] {
    var (names, wanted) = ([CodePlace: [SymbolName]](), [String: [UInt64]]())
    for place in places where found[place.buildID] != nil {
      if let known = answers[place] ?? older[place] {
        keep(known, at: place)
        names[place] = known
      } else {
        wanted[place.buildID, default: []].append(place.offset)
      }
    }
    guard !wanted.isEmpty, Self.isInstalled else { return names }
    for (id, offsets) in wanted {
      var rest = offsets.sorted()[...]
      while !rest.isEmpty {
        for (offset, answer) in ask(id, Array(rest.prefix(Self.placesMax))) {
          let place = CodePlace(buildID: id, offset: offset)
          keep(answer, at: place)
          names[place] = answer
        }
        rest = rest.dropFirst(Self.placesMax)
      }
    }
    return names
  }

  private func keep(_ names: [SymbolName], at place: CodePlace) {
    answers[place] = names
    if answers.count >= Self.answersMax / 2 { (older, answers) = (answers, [:]) }
  }

  /// Asks each program. The answer with more functions counts, or else the one with a line.
  private func ask(_ buildID: String, _ offsets: [UInt64]) -> [UInt64: [SymbolName]] {
    Self.programs.filter { failed[buildID]?[$0] == nil }.reduce(into: [:]) { found, program in
      found.merge(ask(program, buildID, offsets)) { SymbolName.saysMore($1, than: $0) ? $1 : $0 }
    }
  }

  private func ask(_ program: String, _ buildID: String, _ offsets: [UInt64]) -> [UInt64: [SymbolName]] {
    children += 1
    let words = [program, "-a", "-f", "-i", "-C", "-e", folder.path(of: buildID)]
    let child = ConfinedProgram(
      cpuSeconds: cpuSeconds, seconds: 3 * Int(cpuSeconds),
      memoryBytes: Self.memoryBytesMax + (found[buildID]?.bytes ?? 0),
      outputBytesMax: 8 * 1_048_576)
    let ran = child.run(words + offsets.map { "0x" + String($0, radix: 16) })
    // It exits with 1 for a file that it can't read, and for one unknown place, too.
    let answers = SymbolName.answers(ran.output, asked: Set(offsets), isWhole: ran.fault == nil)
    if let fault = ran.fault ?? (answers.isEmpty ? "it is no file that addr2line reads" : nil) {
      failed[buildID, default: [:]][program] = fault
      log.warning(
        "a program can't read a debug file; frames of its build may stay without names",
        ["build": buildID, "program": program, "cause": fault])
    }
    return answers
  }
}

/// A program that is run for its output over what is hostile. Blocks until it has ended.
struct ConfinedProgram {
  let cpuSeconds: UInt32, seconds: Int
  let memoryBytes: Int, outputBytesMax: Int
  /// Of a file that it writes; 0: it can read files and nothing else.
  var fileBytesMax = 0

  struct Ran {
    /// Why the output may not be whole; nil: it exited by itself, with 0 or with 1.
    var fault: String?
    var output: [UInt8]
  }

  /// - Parameter words: an absolute path, then the arguments.
  func run(_ words: [String]) -> Ran {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { return Ran(fault: String(cString: strerror(errno)), output: []) }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    defer { close(ends[0]) }
    var arguments = words.map { strdup($0) } + [nil]
    defer { for argument in arguments { free(argument) } }
    let limits = prism_confinement(
      cpu_seconds: cpuSeconds, memory_bytes: UInt(memoryBytes), file_bytes: UInt(fileBytesMax))
    let child = prism_start_confined(&arguments, ends[1], limits)
    let code = errno
    close(ends[1])
    guard child > 0 else { return Ran(fault: String(cString: strerror(code)), output: []) }
    let (output, end) = ChildOutput.read(ends[0], bytesMax: outputBytesMax, seconds: seconds)
    kill(child, SIGKILL)  // one that has closed its output may go on
    let status = ChildOutput.status(of: child)
    let fault =
      switch end {
      case .whole: Self.fault(of: status)
      case .tooLate: "its time is over"
      case .tooLong: "its output is over \(outputBytesMax) bytes"
      }
    return Ran(fault: fault, output: output)
  }

  private static func fault(of status: Int32) -> String? {
    switch (status & 0x7F, (status >> 8) & 0xFF) {
    case (0, 0), (0, 1): nil
    case (0, 126): "it can't be confined: seccomp is needed"
    case (0, let code): "it exits with \(code)"
    case (SIGXCPU, _): "its time is over"
    case (let signal, _): "signal \(signal) ended it"
    }
  }
}
