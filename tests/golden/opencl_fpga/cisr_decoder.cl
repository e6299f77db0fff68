__kernel void A_decoder_scheduler(void) {
    int ends[2] = {0};
    int row = 0;
    int ended = 0;
    int mode = 0;
    while (mode >= 0) {
        switch (mode) {
        case 0: {  // rows
            int next_length = read_channel_intel(A_decoder_scheduler_length);
            mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
            if (-1 < next_length) {
                // row to the first machine that is free
                int row_before = row;
                int end_0 = ends[0];
                int end_1 = ends[1];
                bool right_0_0 = end_1 < end_0;
                int winner = right_0_0 ? 1 : 0;
                ends[0] = winner == 0 ? end_0 + next_length : end_0;
                ends[1] = winner == 1 ? end_1 + next_length : end_1;
                row = row_before + 1;
                mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
                write_channel_intel(A_decoder_dealer_machine_0, winner);
                mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
                write_channel_intel(A_decoder_dealer_row_0, row_before + 1);
                mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
                write_channel_intel(A_decoder_dealer_length_0, next_length);
                mode = 0;
            } else {
                // rows end
                mode = 1;
            }
            break;
        }
        case 1: {  // finish
            if (ended == 1) {
                // end of the last machine
                mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
                write_channel_intel(A_decoder_dealer_machine_0, ended);
                mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
                write_channel_intel(A_decoder_dealer_row_0, row + 1);
                mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
                write_channel_intel(A_decoder_dealer_length_0, -1);
                mode = -1;
            } else {
                // end of a machine
                int ended_before = ended;
                ended = ended_before + 1;
                mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
                write_channel_intel(A_decoder_dealer_machine_0, ended_before);
                mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
                write_channel_intel(A_decoder_dealer_row_0, row + 1);
                mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
                write_channel_intel(A_decoder_dealer_length_0, -1);
                mode = 1;
            }
            break;
        }
        }
    }
}

__kernel void A_decoder_dealer_0(void) {
    int mode = 0;
    while (mode >= 0) {
        switch (mode) {
        case 0: {  // deal
            int machine = read_channel_intel(A_decoder_dealer_machine_0);
            mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
            int row = read_channel_intel(A_decoder_dealer_row_0);
            mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
            int length = read_channel_intel(A_decoder_dealer_length_0);
            mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
            if (machine == 0 && length == -1) {
                // end from the scheduler
                write_channel_intel(A_decoder_run_row_0, row);
                mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
                write_channel_intel(A_decoder_run_length_0, length);
                mode = 1;
            } else if (machine == 0) {
                // own row from the scheduler
                write_channel_intel(A_decoder_run_row_0, row);
                mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
                write_channel_intel(A_decoder_run_length_0, length);
                mode = 0;
            } else {
                // pass from the scheduler
                mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
                write_channel_intel(A_decoder_dealer_machine_next_0, machine);
                mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
                write_channel_intel(A_decoder_dealer_row_next_0, row);
                mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
                write_channel_intel(A_decoder_dealer_length_next_0, length);
                mode = 0;
            }
            break;
        }
        case 1: {  // after
            int machine = read_channel_intel(A_decoder_dealer_machine_0);
            mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
            int row = read_channel_intel(A_decoder_dealer_row_0);
            mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
            int length = read_channel_intel(A_decoder_dealer_length_0);
            mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
            if (machine == 1) {
                // pass the last end from the scheduler
                mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
                write_channel_intel(A_decoder_dealer_machine_next_0, machine);
                mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
                write_channel_intel(A_decoder_dealer_row_next_0, row);
                mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
                write_channel_intel(A_decoder_dealer_length_next_0, length);
                mode = -1;
            } else {
                // pass an end from the scheduler
                mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
                write_channel_intel(A_decoder_dealer_machine_next_0, machine);
                mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
                write_channel_intel(A_decoder_dealer_row_next_0, row);
                mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
                write_channel_intel(A_decoder_dealer_length_next_0, length);
                mode = 1;
            }
            break;
        }
        }
    }
}

__kernel void A_decoder_dealer_1(void) {
    int mode = 0;
    while (mode >= 0) {
        switch (mode) {
        case 0: {  // deal
            int machine_next = read_channel_intel(A_decoder_dealer_machine_next_0);
            mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
            int row_next = read_channel_intel(A_decoder_dealer_row_next_0);
            mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
            int length_next = read_channel_intel(A_decoder_dealer_length_next_0);
            mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
            if (machine_next == 1 && length_next == -1) {
                // end from the machine before
                write_channel_intel(A_decoder_run_row_1, row_next);
                mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
                write_channel_intel(A_decoder_run_length_1, length_next);
                mode = 1;
            } else if (machine_next == 1) {
                // own row from the machine before
                write_channel_intel(A_decoder_run_row_1, row_next);
                mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
                write_channel_intel(A_decoder_run_length_1, length_next);
                mode = 0;
            } else {
                // pass from the machine before
                mode = 0;
            }
            break;
        }
        case 1: {  // after
            // end
            mode = -1;
            break;
        }
        }
    }
}

__kernel void A_decoder_0(void) {
    int row = 0;
    int left = 0;
    int sent = 0;
    int mode = 0;
    while (mode >= 0) {
        switch (mode) {
        case 0: {  // run
            int next_row = read_channel_intel(A_decoder_run_row_0);
            int length = read_channel_intel(A_decoder_run_length_0);
            mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
            if (length == 1) {
                // row of one
                sent = sent + 1;
                write_channel_intel(multiplier_row_0, next_row);
                mode = 0;
            } else if (1 < length) {
                // row begins
                sent = sent + 1;
                row = next_row;
                left = length - 1;
                write_channel_intel(multiplier_row_0, next_row);
                mode = 1;
            } else if (length == 0) {
                // empty row
                mode = 0;
            } else if (sent == 6) {
                // end
                mode = -1;
            } else {
                // padding begins
                mode = 2;
            }
            break;
        }
        case 1: {  // row
            if (left == 1) {
                // row ends
                sent = sent + 1;
                write_channel_intel(multiplier_row_0, row);
                mode = 0;
            } else {
                // row
                sent = sent + 1;
                left = left - 1;
                write_channel_intel(multiplier_row_0, row);
                mode = 1;
            }
            break;
        }
        case 2: {  // pad
            if (sent == 5) {
                // last padding
                write_channel_intel(multiplier_row_0, 0);
                mode = -1;
            } else {
                // padding
                sent = sent + 1;
                write_channel_intel(multiplier_row_0, 0);
                mode = 2;
            }
            break;
        }
        }
    }
}
