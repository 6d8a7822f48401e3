import Glibc
import PrismBase
import PrismCollector
import PrismConfig
import PrismPacket
import PrismProtocol

extension CollectorCommand {
  static let check = early("check", 0...0) { line throws(Fault) in
    let options = try line.options
    let missing = try missingFolders(of: options.outputs)
    if let remote = options.remote {
      do throws(ConfigurationFaults) { _ = try RemoteFolder.read(remote.folder) } catch {
        throw Fault(message: "the configuration has faults\n\(error.description)", exitCode: 78)
      }
    }
    print("the configuration has no fault")
    for warning in options.symbolWarnings + missing {
      complain(warning)
    }
  }

  /// - Throws: 78 for a folder that can't be made, because a part of its path is no folder.
  private static func missingFolders(of outputs: [CollectorConfiguration.Output]) throws(Fault) -> [String] {
    var warnings: [String] = []
    for output in outputs {
      guard case .ndjson(let folder?, _, _, _) = output.target else { continue }
      do throws(FileError) { close(try Folder.open(folder)) } catch {
        guard error.cause == .system(errno: ENOENT, what: "be opened") else {
          throw Fault(message: "the output \(output.name): \(error)", exitCode: 78)
        }
        warnings.append("the output \(output.name): \(folder) is missing; the collector makes it at its start")
      }
    }
    return warnings
  }

  static let migrate = early(
    "migrate", 0...0, options: [ArgumentOption("--from", "STATE", "a state folder, or postgresql://…")]
  ) { line throws(Fault) in try migrateStore(line.options, from: line["--from"]) }

  static let backup = early("backup", 1...1, missing: "the FOLDER that the copies go to") { line throws(Fault) in
    try backUp(line.options, to: line.operands[0])
  }

  static let restore = early("restore", 0...1, options: [.yes]) { line throws(Fault) in try restoreStore(line) }

  private static func early(
    _ name: String, _ count: ClosedRange<Int>, missing: String = "", options: [ArgumentOption] = [],
    _ body: @escaping @Sendable (CollectorLine) throws(Fault) -> Void
  ) -> CollectorCommand {
    CollectorCommand(early: name, options: options) { line throws(Fault) in
      guard line.operands.count >= count.lowerBound else { throw line.misused("\(name) needs \(missing)") }
      guard line.operands.count <= count.upperBound else {
        throw line.misused("\(ArgumentFault.unexpectedWord(line.operands[count.upperBound]))")
      }
      try body(line)
    }
  }

  static let deviceKey = CollectorCommand(name: "device-key") { line throws(Fault) in
    guard line.operands.count == 2 else { throw line.misused("device-key needs KEY-ID and DEVICE") }
    try CollectorDesk.check(line.operands[1])
    return try await printDeviceKey(line.operands[0], line.operands[1], line.options)
  }
}

/// - Parameter from: a state folder or `postgresql://…` whose store is carried into the flags' one; nil: only the tables are made.
private func migrateStore(_ options: CollectorOptions, from: String?) throws(Fault) {
  guard let target = options.store else {
    throw .usage("migrate is for store: postgresql://…; SQLite needs no such step")
  }
  do throws(PostgreSQLSetup.Refusal) {
    print("the schema has version \(try PostgreSQLSetup.migrate(target))")
  } catch { throw .unavailable(error.description) }
  guard let from else { return }
  do { try StoreMigration(from: from, to: target).run { print($0) } } catch {
    throw .unavailable("\(error)")
  }
}

private func backUp(_ options: CollectorOptions, to folder: String) throws(Fault) {
  guard options.store == nil else {
    throw .usage("backup is for SQLite; PostgreSQL has pg_dump and base backups (docs/backup.md)")
  }
  do { try StoreBackup(state: options.state).copy(to: folder) { print($0) } } catch {
    let isOfTarget = error is FileError || (error as? StoreBackup.Fault)?.isOfTarget == true
    throw Fault(message: "backup: \(error)", exitCode: isOfTarget ? 73 : 69)
  }
}

/// Its operand is the folder of `backup`; without one it is for a PostgreSQL that its own tools restored.
private func restoreStore(_ line: CollectorLine) throws(Fault) {
  let (options, folder) = (try line.options, line.operands.first)
  switch (options.store, folder) {
  case (nil, nil): throw .usage("restore needs the FOLDER of `prism-collector backup`")
  case (.some, .some):
    throw .usage("restore the database with PostgreSQL's own tools, then run restore without a folder")
  case (nil, let folder?):
    try line.confirm(
      "replace the store in \(options.state.printable) by the copy in \(folder.printable)?",
      else: "nothing was restored")
  case (.some, nil): break
  }
  do {
    if let target = options.store {
      try StoreBackup.leap(target)
    } else if let folder {
      try StoreBackup(state: options.state).restore(
        from: folder, now: SystemTime().unixMilliseconds
      ) { print($0) }
    }
  } catch { throw .unavailable("restore: \(error)") }
  print("start the collector: devices give it the records again that it lacks; reports since the copy are lost")
}

/// The key is what the device's file holds; its first half is the key of a cipher with 16 bytes.
private func printDeviceKey(
  _ id: String, _ device: String, _ options: CollectorOptions
) async throws(Fault) -> Int32 {
  guard let master = options.keys[id], options.keyRules[id]?.derivesForDevice == true else {
    throw .usage("there is no key \(id) with `derive: device` in the configuration")
  }
  let generation: Int
  do throws(StoreFailure) {
    generation = try await DeviceStore(options.fleet).device(device)?.generation ?? 0
  } catch { throw .unavailable(error.description) }
  do throws(PacketError) {
    let key = try DeviceKey.derived(
      master: master, keyID: id, deviceID: device, generation: generation, cipher: .aes256GCM)
    print(Hex.encode(key.bytes))
    return 0
  } catch { throw Fault(message: "a master key has at least \(DeviceKey.masterBytesMin) bytes", exitCode: 78) }
}
