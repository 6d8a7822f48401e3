import CLinux
import Glibc
import PrismBase
public import PrismEngine

// From `/proc/self`.
extension ProcessFigures {
  /// Opens and reads a few small files. Figures that can't be read stay 0.
  public static func current() -> ProcessFigures {
    var figures = ProcessFigures()
    figures.readMemory()
    figures.readStat()
    figures.openDescriptors = countDescriptors()
    var limit = rlimit()
    if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
      figures.descriptorsMax = Int(clamping: limit.rlim_cur)
    }
    return figures
  }

  private mutating func readMemory() {
    let pages = Self.numbers(in: "/proc/self/statm")
    guard pages.count > 1 else { return }
    let pageBytes = sysconf(Int32(_SC_PAGESIZE))
    (virtualBytes, residentBytes) = (pages[0] * pageBytes, pages[1] * pageBytes)
  }

  /// proc(5): after the command in parentheses, which may hold anything, `state` is field 3, utime 14, stime 15,
  /// num_threads 20, starttime 22.
  private mutating func readStat() {
    guard let bytes = try? SmallFile.read("/proc/self/stat"), let end = bytes.lastIndex(of: UInt8(ascii: ")")) else {
      return
    }
    let fields = bytes[(end + 1)...].split(separator: UInt8(ascii: " ")).map {
      Int(String(decoding: $0, as: UTF8.self)) ?? 0
    }
    guard fields.count > 19 else { return }
    let ticks = Double(sysconf(Int32(_SC_CLK_TCK)))
    cpuSeconds = Double(fields[11] + fields[12]) / ticks
    threads = fields[17]
    let time = SystemTime()
    let booted = Double(time.unixMilliseconds) / 1000 - time.uptime / .seconds(1)
    startSeconds = ((booted + Double(fields[19]) / ticks) * 100).rounded() / 100
  }

  private static func numbers(in path: String) -> [Int] {
    guard let bytes = try? SmallFile.read(path) else { return [] }  // no /proc: the figure is unknown
    return bytes.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\n") }.compactMap {
      Int(String(decoding: $0, as: UTF8.self))
    }
  }

  private static func countDescriptors() -> Int {
    guard let names = try? Folder.names(in: "/proc/self/fd") else { return 0 }  // no /proc: the figure is unknown
    return max(names.count - 1, 0)  // without the one that lists
  }
}

/// The memory of the process.
public enum ResidentMemory {
  /// Gives back what only the start, or a load that is over, needed: free memory of the heap, and pages of code.
  ///
  /// Code is clean pages of files, of which an idle daemon uses a tenth. Pages that are needed again come from the page
  /// cache, with a fault of a microsecond for 64 KiB. This costs a few hundred system calls.
  public static func giveBack() {
    malloc_trim(0)
    prism_forget_code()
  }
}
