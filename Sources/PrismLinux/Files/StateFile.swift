import Glibc
import PrismBase
public import PrismEngine

/// A file of the state folder that is written whole or not at all. Works on a queue of its own.
public actor StateFile: KeptFile {
  private nonisolated let executor = DispatchQueueExecutor(label: "prism.state.file")
  /// The queue that waits for the disk.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let path: String

  /// The folder must exist by the first write.
  public init(folder: String, name: String) { path = "\(folder)/\(name)" }

  /// The content of the file; nil if it does not exist.
  public func read(bytesMax: Int) throws(KeptFileFault) -> [UInt8]? {
    do throws(FileError) { return try SmallFile.read(path, bytesMax: bytesMax) } catch {
      if error.isMissing { return nil }
      throw KeptFileFault(error.description)
    }
  }

  /// Replaces the content by a new file and a rename, synced: a crash leaves the old content or the new one.
  public func write(_ bytes: [UInt8]) throws(KeptFileFault) {
    do throws(FileError) { try SmallFile.replace(path, with: bytes) } catch {
      throw KeptFileFault(error.description)
    }
  }

  /// Renames a damaged file. Returns its new path.
  public func setAside() throws(KeptFileFault) -> String {
    guard rename(path, path + ".damaged") == 0 else {
      throw KeptFileFault("\(path): cannot be set aside: \(String(cString: strerror(errno)))")
    }
    return path + ".damaged"
  }
}
