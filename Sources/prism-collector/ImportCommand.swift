import PrismBase
import PrismCollector
import PrismPacket
import PrismProtocol

extension Command {
  /// `prism-collector import DIR`: takes the packets of a folder, and writes their receipts into it.
  static let importing = Command(
    "import", "take the packets that `prismctl carry` wrote into DIR, and write their receipts there",
    operands: ["DIR"],
    work: .later { line throws(Failure) in
      var folder = FolderImport(folder: line.operands[0], options: try line.options)
      return try await folder.run()
    })
}

private struct FolderImport {
  private let folder: String
  private let options: CollectorOptions
  /// Packets of the folder that are not at the collector: those behind them are left, so that the order stays.
  private var missing: Set<PacketID> = []
  private var counts = (taken: 0, duplicate: 0, behind: 0)
  private var problems: [String] = []

  init(folder: String, options: CollectorOptions) { (self.folder, self.options) = (folder, options) }

  mutating func run() async throws(Failure) -> Int32 {
    let files: CarriedFolder
    do throws(FileError) { files = try CarriedFolder(folder, bodyBytesMax: options.bodyBytesMax) } catch {
      throw Failure(Failure.noInput, error.description)
    }
    for (name, fault) in files.faults {
      problems.append("\(FilePath.joined(folder, name)): \(fault)")
      if let id = CarriedPacket.id(inFileName: name) { missing.insert(id) }
    }
    let answers = try await taken(files)
    try write(answers)
    print(summary)
    for problem in problems { complain(problem.printable) }
    return problems.isEmpty ? 0 : 1
  }

  /// Through the collector that runs, or by one that is opened for this.
  private mutating func taken(_ files: CarriedFolder) async throws(Failure) -> [CarriedAnswer] {
    do {
      if options.store == nil, let running = RunningCollector(state: options.state) {
        return try await taken(files) { packet in try running.take(packet) }
      }
      let intake = CarriedIntake(try Collector(options, log: Logger()))
      let answers = try await taken(files) { packet in await intake.take(packet) }
      await intake.end()
      return answers
    } catch { throw .unavailable("\(error)") }
  }

  private mutating func taken(
    _ files: CarriedFolder, by take: (CarriedPacket) async throws -> CarriedAnswer
  ) async throws -> [CarriedAnswer] {
    var answers: [CarriedAnswer] = []
    for name in files.names {
      guard case .success(let packet) = files.read(name) else { continue }
      if let before = packet.headers.dependsOn, missing.contains(before) {
        missing.insert(packet.headers.packetID)
        counts.behind += 1
        continue
      }
      let answer = try await take(packet)
      answers.append(answer)
      note(answer, name)
    }
    return answers
  }

  private mutating func note(_ answer: CarriedAnswer, _ name: String) {
    let body = try? JSONValue(parsing: Array(answer.body.utf8))
    if answer.isTaken {
      if body?["duplicate"]?.bool == true { counts.duplicate += 1 } else { counts.taken += 1 }
    } else {
      missing.insert(answer.headers.packetID)
      problems.append("\(FilePath.joined(folder, name)): \(answer.status): \(body?["message"]?.string ?? "")")
    }
  }

  /// Answers of an earlier import stay, but for packets that were answered again.
  private func write(_ answers: [CarriedAnswer]) throws(Failure) {
    let path = FilePath.joined(folder, CarriedAnswer.fileName)
    let known = Set(answers.map(\.headers.packetID))
    let earlier = SideFile.bytes(path, bytesMax: .max)?.split(separator: UInt8(ascii: "\n")).compactMap { line in
      (try? JSONValue(parsing: Array(line))).flatMap { CarriedAnswer(json: $0) }
    }
    let all = (earlier ?? []).filter { !known.contains($0.headers.packetID) } + answers
    guard !all.isEmpty else { return }
    let text = all.map { $0.json.text + "\n" }.joined()
    do throws(FileError) { try SmallFile.replace(path, with: Array(text.utf8)) } catch {
      throw Failure(Failure.cannotCreate, "\(error.description); import the folder again: nothing is stored twice")
    }
  }

  private var summary: String {
    var lines = ["\(counts.taken) packets taken, \(counts.duplicate) were here already"]
    if counts.behind > 0 { lines.append("\(counts.behind) packets left, because one before them was not taken") }
    if counts.taken + counts.duplicate > 0 {
      lines.append("Back at the device: prismctl carry --settle \(folder)")
    }
    return lines.joined(separator: "\n")
  }
}
