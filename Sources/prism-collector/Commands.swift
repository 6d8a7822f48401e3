import Glibc
import PrismBase
import PrismCollector
import PrismConfig
import PrismPacket
import PrismProtocol

extension Command {
  static let check = early("check", "print every fault of the configuration, and start nothing") {
    line throws(Failure) in
    let options = try line.options
    let missing = try missingFolders(of: options.outputs)
    if let remote = options.remote {
      do throws(ConfigurationFaults) { _ = try RemoteFolder.read(remote.folder) } catch {
        throw Failure(Failure.configuration, "the configuration has faults\n\(error.description)")
      }
    }
    print("the configuration has no fault")
    for warning in options.symbolWarnings + missing {
      complain(warning)
    }
  }

  /// - Throws: 78 for a folder that can't be made, because a part of its path is no folder.
  private static func missingFolders(of outputs: [CollectorConfiguration.Output]) throws(Failure) -> [String] {
    var warnings: [String] = []
    for output in outputs {
      guard case .ndjson(let folder?, _, _, _) = output.target else { continue }
      do throws(FileError) { close(try Folder.open(folder)) } catch {
        guard error.cause == .system(errno: ENOENT, what: "be opened") else {
          throw Failure(Failure.configuration, "the output \(output.name): \(error)")
        }
        warnings.append("the output \(output.name): \(folder) is missing; the collector makes it at its start")
      }
    }
    return warnings
  }

  static let migrate = early(
    "migrate",
    """
    make the tables in PostgreSQL, or bring them to this program's version
    With --from it carries another store's streams, packet ids, records, devices and states of crashes.
    """, options: [Option("--from", "STATE", "a state folder, or postgresql://…")]
  ) { line throws(Failure) in try migrateStore(line.options, from: line["--from"]) }

  static let backup = early(
    "backup", "copy the databases of --state into a new folder, while a collector may use them", operands: ["FOLDER"]
  ) { line throws(Failure) in try backUp(line.options, to: line.operands[0]) }

  static let restore = early(
    "restore",
    """
    put the copies in their place while the collector is stopped, and ask first
    Without FOLDER it is for a PostgreSQL that its own tools restored: numbers begin behind all that devices may know.
    """, operands: ["[FOLDER]"], options: [.yes]
  ) { line throws(Failure) in try restoreStore(line) }

  private static func early(
    _ words: String, _ summary: String, operands: [String] = [], options: [Option] = [],
    _ work: @escaping @Sendable (Invocation) throws(Failure) -> Void
  ) -> Command {
    Command(words, summary, operands: operands, options: options, work: .early(work))
  }

  static let deviceKey = Command(
    "device-key", "print the key that DEVICE has under the master key KEY-ID: 64 hexadecimal digits",
    operands: ["KEY-ID", "DEVICE"],
    work: .later { line throws(Failure) in
      try CollectorClient.check(line.operands[1])
      return try await printDeviceKey(line.operands[0], line.operands[1], line.options)
    })
}

/// - Parameter from: a state folder or `postgresql://…` whose store is carried into the flags' one; nil: only the tables are made.
private func migrateStore(_ options: CollectorOptions, from: String?) throws(Failure) {
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

private func backUp(_ options: CollectorOptions, to folder: String) throws(Failure) {
  guard options.store == nil else {
    throw .usage("backup is for SQLite; PostgreSQL has pg_dump and base backups (docs/backup.md)")
  }
  do { try StoreBackup(state: options.state).copy(to: folder) { print($0) } } catch {
    let isOfTarget = error is FileError || (error as? StoreBackup.Fault)?.isOfTarget == true
    throw Failure(isOfTarget ? Failure.cannotCreate : Failure.unavailable, "backup: \(error)")
  }
}

/// Its operand is the folder of `backup`; without one it is for a PostgreSQL that its own tools restored.
private func restoreStore(_ line: Invocation) throws(Failure) {
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
) async throws(Failure) -> Int32 {
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
  } catch { throw Failure(Failure.configuration, "a master key has at least \(DeviceKey.masterBytesMin) bytes") }
}
